"""A catalogue of kinds of task, one `KIND` per file, named by the kind; no other file of the room knows their names."""

from __future__ import annotations

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import TRAINER, kind_of_task
from esper_ab.settings.kind import SettingsKind


def kind_of(task: str, *, trained: bool = False) -> SettingsKind:
    """Return the kind of a task as plans have it; `trained`: by a trainer of the user's own, of which it is no name."""
    kind: SettingsKind = catalog.entry(__name__, TRAINER if trained else kind_of_task(task), "KIND")
    return kind
