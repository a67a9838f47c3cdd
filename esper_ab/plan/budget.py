"""What docs/evidence/studies measured on digits: episodes after which rewards differ, and the SD of pairs. Pure."""

from __future__ import annotations

import math

from esper_ab.settings.differences import differences
from esper_ab.settings.experiment import ResolvedExperiment

MEASURED_ON = "esper_ab's own runs on digits"  # in docs/evidence/studies
ENOUGH_EPISODES = 960  # training episodes (episodes x environments) of a run, so that few pairs tell rewards apart
# SD of the paired differences of shaped and simplified, in points, after fewer episodes and from these on.
_SD_BELOW = 9.5
_SD_FROM = 2.3


def enough_episodes(experiment: ResolvedExperiment) -> int | None:
    """Return the `episodes` from which the groups' rewards differ; None if that is unknown or already reached."""
    if not _compares_rewards_on_digits(experiment) or _trained(experiment) >= ENOUGH_EPISODES:
        return None
    return math.ceil(ENOUGH_EPISODES / experiment.n_envs)


def known_sd_of_pairs(experiment: ResolvedExperiment) -> float | None:
    """Return the SD of paired differences between two rewards, in points; None if it is unknown."""
    if not _compares_rewards_on_digits(experiment) or experiment.outcome_over != "evaluation" or experiment.unpaired:
        return None
    if _trained(experiment) >= ENOUGH_EPISODES:
        return _SD_FROM
    return _SD_BELOW


def _compares_rewards_on_digits(experiment: ResolvedExperiment) -> bool:
    """Whether groups that learn differ in their reward modes, which are in the catalogue, and in nothing else."""
    if experiment.task != "digits" or not all(group.settings.learns for group in experiment.groups):
        return False
    if any(":" in group.settings.reward.mode for group in experiment.groups):
        return False
    return [difference.key for difference in differences(experiment.groups)] == ["reward.mode"]


def _trained(experiment: ResolvedExperiment) -> int:
    return experiment.episodes * experiment.n_envs
