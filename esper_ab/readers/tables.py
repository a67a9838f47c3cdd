"""The tables of an experiment directory: the views of docs/sql.md and the conclusions, with rows in a fixed order."""

from __future__ import annotations

# Order of rows: by run, then by the columns that identify a row; n: the order of the journal.
_ORDER = {
    "runs": "group_id, replicate",
    "episodes": "group_id, replicate, episode",
    "env_episodes": "group_id, replicate, episode, env",
    "evaluations": "group_id, replicate, actions DESC, episode, env",
    "ppo_updates": "group_id, replicate, episode",
    "seed_events": "group_id, replicate, episode, n",
    "incidents": "n",
    "comparisons": "n",
    "pairs": "n",
}
TABLES = tuple(_ORDER)


def table_sql(name: str) -> str:
    """Return SQL that selects one of TABLES, with the rows in a fixed order."""
    numbered_query = f"SELECT *, row_number() OVER () AS n FROM {name}"
    return f"SELECT * EXCLUDE (n) FROM ({numbered_query}) ORDER BY {_ORDER[name]}"
