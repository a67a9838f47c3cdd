"""What a kind of task resolves on a machine: the typed step from an AskedExperiment to a ResolvedExperiment."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.contracts.settings import Arithmetic
from esper_ab.settings.experiment import Group


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """The settings that depend on the machine and on the kind of task."""

    groups: tuple[Group, ...]
    slots: tuple[str, ...]
    devices: tuple[str, ...]
    arithmetic: Arithmetic
    eval_episodes: int
    episodes: int | None = None  # None: as asked
    code: tuple[str, ...] = ()  # NAME=COMMIT of each group, if groups differ in the state of the code
    code_kept: str = ""  # the folder with those that are no commits of the user's, relative to the experiment's
