"""What only the user can say about rows of unknown origin: whether they are runs, and which outcomes are better. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.errors import OpenQuestion, Setting
from esper_ab.verdict.observations import ITEMS, Observations, names_items


def on_items(observations: Observations) -> Iterator[OpenQuestion]:
    """Yield a question if the column that names or pairs runs is called like the items of a run."""
    column = observations.run_column
    if names_items(column) and not observations.rows_are_runs:
        yield OpenQuestion(
            f"the column {column} names items of a run, not training runs, and {ITEMS}; if each row is a training run "
            "of its own",
            (Setting("rows", "runs"),),
        )
