"""A catalogue of kinds of task: each file defines one `KIND`, named after the file."""

from __future__ import annotations

from esper_ab.contracts import catalog
from esper_ab.contracts.kinds_of_task import TRAINER, kind_of_task
from esper_ab.settings.kind import SettingsKind


def kind_of(task: str, *, trained: bool = False) -> SettingsKind:
    """Return the kind of a task from its name in plans; with `trained`, return the kind of a user's trainer."""
    kind: SettingsKind = catalog.entry(__name__, TRAINER if trained else kind_of_task(task), "KIND")
    return kind
