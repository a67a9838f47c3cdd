"""Cross-evaluation: score every group's policies by every reward mode and by the outcome. Pure.

All modes are computed on every evaluation episode from the same facts. The rewards of one mode may be compared between
groups but never with those of another mode, because each mode has its own scale. Only sampled actions count, as in the
outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from esper_ab.contracts.records import EvaluatedEpisode
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import mean
from esper_ab.stats.correlation import Correlation, correlation


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
    evaluated = {group: _evaluated(history.of_group(group)) for group in history.groups}
    everything = [episodes for runs in evaluated.values() for episodes in runs]
    modes = tuple(sorted({mode for episodes in everything for episode in episodes for mode in episode.rewards}))
    return CrossEvaluation(
        modes=modes,
        rows=tuple(
            CrossRow(
                group=group,
                runs=len(runs),
                outcome=mean(map(_outcome, runs)),
                rewards={mode: mean(_reward(eval_episodes, mode) for eval_episodes in runs) for mode in modes},
            )
            for group, runs in evaluated.items()
        ),
        meanings=tuple(
            RewardMeaning(
                mode=mode,
                episodes=_correlation(
                    (played.rewards.get(mode), played.result.outcome) for of_run in everything for played in of_run
                ),
                runs=_correlation((_reward(of_run, mode), _outcome(of_run)) for of_run in everything),
            )
            for mode in modes
        ),
    )


Episodes = tuple[EvaluatedEpisode, ...]  # one run's evaluation episodes with sampled actions; at least one


def _evaluated(runs: Sequence[RunHistory]) -> list[Episodes]:
    found = [
        tuple(played for played in run.evaluation.episodes if played.actions == "sampled")
        for run in runs
        if run.evaluation is not None and not run.lost
    ]
    return [eval_episodes for eval_episodes in found if eval_episodes]


def _outcome(eval_episodes: Episodes) -> float | None:
    return mean(played.result.outcome for played in eval_episodes)


def _reward(eval_episodes: Episodes, mode: str) -> float | None:
    return mean(played.rewards.get(mode) for played in eval_episodes)


def _correlation(pairs: Iterable[tuple[float | None, float | None]]) -> Correlation:
    both = np.array([*pairs], dtype=np.float64).reshape(-1, 2)  # None becomes NaN
    return correlation(*both[np.isfinite(both).all(axis=1)].T)
