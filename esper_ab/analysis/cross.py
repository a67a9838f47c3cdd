"""Cross-evaluation: every group's policies scored by every reward mode, with held-out accuracy. Pure.

All modes are computed on every evaluation episode from the same facts. A mode's rewards may be compared between groups,
never with another mode's: each has its own scale. Sampled actions only, as in the endpoint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from esper_ab.contracts.records import EvaluationEpisode
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import mean
from esper_ab.stats.correlation import Correlation, correlation


class CrossRow(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one group's policies; means over runs of the run's mean."""

    group: str
    runs: int  # number evaluated
    accuracy: float | None  # held-out, percent
    rewards: dict[str, float | None]  # reward per evaluation episode, by mode; None: never computed or never finite


class RewardMeaning(msgspec.Struct, frozen=True, kw_only=True):
    """Correlation of one mode's reward with held-out accuracy, over the evaluations of all groups together."""

    mode: str
    episodes: Correlation  # over evaluation episodes of single environments; those of one run are not independent
    runs: Correlation  # over runs: mean reward against mean accuracy


class CrossEvaluation(msgspec.Struct, frozen=True, kw_only=True):
    """Matrix of groups, in the order of the experiment, by modes, sorted by name, and each mode's correlation."""

    modes: tuple[str, ...]
    rows: tuple[CrossRow, ...]
    meanings: tuple[RewardMeaning, ...]  # one per mode


def cross_evaluation(history: History) -> CrossEvaluation:
    """Cross-evaluate everything evaluated so far, except runs that were given up."""
    evaluated = {group: _evaluated(history.of_group(group)) for group in history.groups}
    everything = [episodes for runs in evaluated.values() for episodes in runs]
    modes = tuple(sorted({mode for episodes in everything for episode in episodes for mode in episode.rewards}))
    return CrossEvaluation(
        modes=modes,
        rows=tuple(_row(group, runs, modes) for group, runs in evaluated.items()),
        meanings=tuple(_meaning(mode, everything) for mode in modes),
    )


Evaluated = tuple[EvaluationEpisode, ...]  # the sampled evaluation episodes of one run, at least one


def _evaluated(runs: Sequence[RunHistory]) -> list[Evaluated]:
    found = [
        tuple(episode for episode in run.evaluation.episodes if episode.actions == "sampled")
        for run in runs
        if run.evaluation is not None and not run.lost
    ]
    return [episodes for episodes in found if episodes]


def _accuracy(episodes: Evaluated) -> float | None:
    return mean(episode.env.final_accuracy for episode in episodes)


def _reward(episodes: Evaluated, mode: str) -> float | None:
    return mean(episode.rewards.get(mode) for episode in episodes)


def _row(group: str, runs: Sequence[Evaluated], modes: Sequence[str]) -> CrossRow:
    return CrossRow(
        group=group,
        runs=len(runs),
        accuracy=mean(_accuracy(episodes) for episodes in runs),
        rewards={mode: mean(_reward(episodes, mode) for episodes in runs) for mode in modes},
    )


def _meaning(mode: str, runs: Sequence[Evaluated]) -> RewardMeaning:
    episodes = [(episode.rewards.get(mode), episode.env.final_accuracy) for of_run in runs for episode in of_run]
    return RewardMeaning(
        mode=mode,
        episodes=_correlation(episodes),
        runs=_correlation([(_reward(of_run, mode), _accuracy(of_run)) for of_run in runs]),
    )


def _correlation(pairs: Sequence[tuple[float | None, float | None]]) -> Correlation:
    both = [(reward, accuracy) for reward, accuracy in pairs if reward is not None and accuracy is not None]
    known = [(reward, accuracy) for reward, accuracy in both if math.isfinite(reward) and math.isfinite(accuracy)]
    return correlation([reward for reward, _ in known], [accuracy for _, accuracy in known])
