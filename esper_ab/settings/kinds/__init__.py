"""A catalogue of kinds of task: one `KIND` per file, named after the file; no other file here knows their names."""

from __future__ import annotations

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import TRAINER, kind_of_task
from esper_ab.settings.kind import SettingsKind


def kind_of(task: str, *, trained: bool = False) -> SettingsKind:
    """Return the kind of a task name as in plans; `trained`: by the user's trainer, whatever the name."""
    kind: SettingsKind = catalog.entry(__name__, TRAINER if trained else kind_of_task(task), "KIND")
    return kind
