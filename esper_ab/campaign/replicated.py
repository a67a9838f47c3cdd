"""The experiment that a launch replicates: the one whose own experiment.toml is launched again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.events import ExperimentStarted
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.plan.plan import EarlierExperiment, Plan
from esper_ab.plan.pooling import is_fresh, replicates
from esper_ab.readers.joint_directory import is_joint, read_joint


@dataclass(frozen=True, kw_only=True)
class OriginalParts:
    """The experiment over several parts whose settings are launched again."""

    earlier: tuple[EarlierExperiment, ...]  # those with which it is pooled, and itself
    plans: Mapping[str, Plan]  # by part

    def replicated_by(self, plans: Mapping[str, Plan]) -> bool:
        """True if `plans` fix the same on every part, on a rng seed that none of them has had."""
        return plans.keys() == self.plans.keys() and all(
            is_fresh(plan, self.earlier) and replicates(plan, self.plans[part]) for part, plan in plans.items()
        )


def parts_beside(settings_file: Path) -> OriginalParts | None:
    """Return the experiment over several parts in whose directory `settings_file` is; None if it is in none.

    If its files cannot be read, or a part has not begun, nothing is declared.
    """
    directory = settings_file.parent
    if not is_joint(directory):
        return None
    from esper_ab.readers.joint import digest_of  # needs numpy, and most settings files are in no such directory

    try:
        joint_experiment = read_joint(directory)
        digest = digest_of(directory)
    except (JournalError, UsageError):
        return None
    plans = {}
    for part in joint_experiment.parts:
        plan = plan_beside(directory / part.folder / settings_file.name)
        if plan is None:
            return None
        plans[part.name] = plan
    rng_seed = next(iter(plans.values())).experiment.rng_seed
    itself = EarlierExperiment(name=directory.resolve().name, digest=digest, rng_seed=rng_seed)
    return OriginalParts(earlier=(*joint_experiment.earlier, itself), plans=plans)


def plan_beside(settings_file: Path) -> Plan | None:
    """Return the plan of the experiment directory that holds `settings_file`; None if it is in none.

    A journal that cannot be read declares nothing: launching its settings again must work all the same.
    """
    path = settings_file.parent / JOURNAL_NAME
    if not path.is_file():
        return None
    try:
        first_event = next(read(path), None)
    except (JournalError, UsageError):
        return None
    return first_event.plan if isinstance(first_event, ExperimentStarted) else None
