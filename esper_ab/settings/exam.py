"""The reward-efficiency exam as a preset: its groups and their control. Pure; analysis/growth/exam.py judges them."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.settings.experiment import AskedExperiment

GROUPS = ("heuristic", "random", "wait", "shaped", "simplified", "sparse")  # unless others are named
EXAMINED = "growth"  # kind of the tasks whose rewards it judges
CONTROL = "random"  # chooses among the valid actions by chance: what a learner has to beat


def as_exam(experiment: AskedExperiment) -> AskedExperiment:
    """Name the control and the untested groups of an exam: those that do not learn; UsageError without a floor."""
    learns = {group.name: group.settings.has_policy for group in experiment.groups}
    floors = [group.name for group in experiment.groups if group.settings.controller.name == "wait"]
    control, exam = experiment.control or CONTROL, Setting("exam")
    if not floors:
        raise UsageError(exam, ": accuracy per added parameter needs the never-grown host: add the group wait")
    if control not in learns:
        raise UsageError(
            exam, f": the control {control} is no group; add it, or name another with ", Setting("control")
        )
    if learns[control]:
        raise UsageError(
            exam, f": the control {control} learns; choose one that does not, as in ", Setting("control", floors[0])
        )
    if not any(learns.values()):
        raise UsageError(exam, ": no group learns; add a reward mode, as in shaped")
    untested = tuple(name for name, learning in learns.items() if not learning and name != control)
    return msgspec.structs.replace(experiment, exam=True, control=control, untested=untested)
