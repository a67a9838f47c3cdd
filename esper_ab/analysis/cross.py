"""Cross-evaluation: score every group's policies by every reward mode and by the outcome. Pure.

All modes are computed on every evaluation episode from the same facts. The rewards of one mode may be compared between
groups but never with those of another mode, because each mode has its own scale. Only sampled actions count, as in the
outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.contracts.records import EvaluatedEpisode
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import mean
from esper_ab.stats.correlation import Correlation, correlation

Episodes = tuple[EvaluatedEpisode, ...]  # one run's evaluation episodes with sampled actions; at least one


class CrossRow(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one group's policies: means over runs of each run's mean."""

    group: str
    runs: int  # number evaluated
    outcome: float | None
    rewards: dict[str, float | None]  # reward per evaluation episode, by mode; None: never computed or never finite


class RewardMeaning(msgspec.Struct, frozen=True, kw_only=True):
    """Correlation of one mode's reward with the outcome, over the evaluations of all groups together."""

    mode: str
    episodes: Correlation  # over evaluation episodes of single environments; those of one run are not independent
    runs: Correlation  # over runs: mean reward against mean outcome


class CrossEvaluation(msgspec.Struct, frozen=True, kw_only=True):
    """Matrix of groups (in the order of the experiment) by modes (by name), and each mode's correlation."""

    modes: tuple[str, ...]
    rows: tuple[CrossRow, ...]
    meanings: tuple[RewardMeaning, ...]  # one per mode


def cross_evaluation(history: History) -> CrossEvaluation:
    """Cross-evaluate everything evaluated so far, except runs that were given up."""
    runs_by_group = {group: _evaluated(history.of_group(group)) for group in history.groups}
    all_episodes: list[Episodes] = []
    for runs in runs_by_group.values():
        all_episodes += runs
    modes = _modes(all_episodes)
    return CrossEvaluation(
        modes=modes,
        rows=tuple(_row(group, runs, modes) for group, runs in runs_by_group.items()),
        meanings=tuple(_meaning(mode, all_episodes) for mode in modes),
    )


def _modes(runs: Sequence[Episodes]) -> tuple[str, ...]:
    modes: set[str] = set()
    for eval_episodes in runs:
        for episode in eval_episodes:
            modes.update(episode.rewards)
    return tuple(sorted(modes))


def _row(group: str, runs: Sequence[Episodes], modes: Sequence[str]) -> CrossRow:
    outcome = mean(_outcome(eval_episodes) for eval_episodes in runs)
    rewards = {mode: mean(_reward(eval_episodes, mode) for eval_episodes in runs) for mode in modes}
    return CrossRow(group=group, runs=len(runs), outcome=outcome, rewards=rewards)


def _meaning(mode: str, runs: Sequence[Episodes]) -> RewardMeaning:
    by_episode = []
    by_run = []
    for eval_episodes in runs:
        by_episode += [(episode.rewards.get(mode), episode.result.outcome) for episode in eval_episodes]
        by_run.append((_reward(eval_episodes, mode), _outcome(eval_episodes)))
    return RewardMeaning(mode=mode, episodes=_correlation(by_episode), runs=_correlation(by_run))


def _evaluated(runs: Sequence[RunHistory]) -> list[Episodes]:
    evaluated_runs = []
    for run in runs:
        if run.evaluation is None or run.lost:
            continue
        sampled_episodes = tuple(episode for episode in run.evaluation.episodes if episode.actions == "sampled")
        if sampled_episodes:
            evaluated_runs.append(sampled_episodes)
    return evaluated_runs


def _outcome(eval_episodes: Episodes) -> float | None:
    return mean(episode.result.outcome for episode in eval_episodes)


def _reward(eval_episodes: Episodes, mode: str) -> float | None:
    return mean(episode.rewards.get(mode) for episode in eval_episodes)


def _correlation(pairs: Sequence[tuple[float | None, float | None]]) -> Correlation:
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)  # None becomes NaN
    finite_rows = values[np.isfinite(values).all(axis=1)]
    return correlation(finite_rows[:, 0], finite_rows[:, 1])
