"""Files of evaluations, each with the scores of one checkpoint on one task: which of them are of one checkpoint. Pure.

lm-evaluation-harness writes a file per task into a folder per model, and Inspect a log per task, which names its model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from esper_ab.contracts.visible import visible_line
from esper_ab.formats.cells import cell_text
from esper_ab.formats.source_table import SourceTable


def folders_of_tasks(tables: Sequence[SourceTable]) -> set[Path]:
    """Return the folders whose files have one task each, and not all the same: they are of one checkpoint."""
    tasks: dict[Path, list[list[str]]] = {}
    for table in tables:
        tasks.setdefault(table.file.parent, []).append(_column_names(table, "task"))
    return {
        folder
        for folder, of_files in tasks.items()
        if all(len(names) == 1 for names in of_files) and len({names[0] for names in of_files}) > 1
    }


def name_models(table: SourceTable) -> bool:
    """True if the format of a table says which model was evaluated on which items, as a log of Inspect does."""
    return {"group", "item"} <= {*table.roles}


def grouped_by_model(tables: Sequence[SourceTable]) -> tuple[list[SourceTable], tuple[str, ...]]:
    """Return the tables of evaluations that name their models, and sentences on what these tell.

    Several models are groups; several logs of one model and task are repeats. With a single model, the tables lose its
    column: the names of the files must tell what is compared.
    """
    logs = Counter((*_column_names(table, "group"), *_column_names(table, "task")) for table in tables)
    models = {name for table in tables for name in _column_names(table, "group")}
    if len(models) > 1:
        return list(tables), tuple(_repeats(names, count) for names, count in logs.items() if count > 1)
    model = visible_line("".join(models), 60)
    renamed_tables = [
        replace(table, roles={role: name for role, name in table.roles.items() if role != "group"}) for table in tables
    ]
    return renamed_tables, (f"All logs are of the model {model}, so the names of the files tell the groups.",)


def _repeats(names: Sequence[str], count: int) -> str:
    return f"The {count} logs of {visible_line(' on '.join(names), 100)} count as repeats of one checkpoint."


def _column_names(table: SourceTable, role: str) -> list[str]:
    """Return the different names in the column with a role; [] if there is none."""
    cells = table.column(role)
    return [] if cells is None else list(dict.fromkeys(map(cell_text, cells)))
