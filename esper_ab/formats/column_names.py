"""Names of columns that say what a column of outcomes means. Pure."""

from __future__ import annotations

PAIR_COLUMNS = ("seed", "pair", "replicate")  # one of them says which runs belong together
COLUMNS = ("group", *PAIR_COLUMNS, "run", "outcome", "task", "cluster", "order", "item", "repeat")
# Other names of columns: in `esper-ab export`, in a grid, and in plans of format 1, in this order.
SYNONYMS = {"group_id": "group", "cell": "task", "endpoint": "outcome"}


def meaning(name: str) -> str:
    """Return our name for a column of the source."""
    plain_name = name.strip().lower()
    return SYNONYMS.get(plain_name, plain_name)
