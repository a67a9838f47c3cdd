"""What each learning group's own reward did in training, beside the outcome: the one it learnt by, the other it has not
seen. Pure; descriptive, never a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import Ends, ends_of, mean
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.word import Verdict

_WORSE = (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)
_BETTER = (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)


@dataclass(frozen=True, kw_only=True)
class OwnReward:
    """Of one group: means over runs, per episode of a rollout in one environment."""

    group: str
    runs: int  # with two episodes at least
    rose: int  # of these runs, those whose own reward was higher in the last tenth than in the first
    reward: Ends  # on the scale of the group's own mode
    outcome: Ends


def own_rewards(history: History) -> tuple[OwnReward, ...]:
    """Return one per group that learns, in the order of the experiment."""
    found = ((group, [run for run in history.of_group(group) if _learnt(run)]) for group in history.groups)
    return tuple(_of_group(group, runs) for group, runs in found if runs)


def misled(rewards: Sequence[OwnReward], comparisons: Sequence[Comparison]) -> tuple[tuple[OwnReward, str], ...]:
    """Return who is worse than whom by the outcome although its own reward rose in most of its runs."""
    rose = {one.group: one for one in rewards if 2 * one.rose > one.runs}
    losses = [(item.question.a, item.question.b) for item in comparisons if item.verdict in _WORSE]
    losses += [(item.question.b, item.question.a) for item in comparisons if item.verdict in _BETTER]
    return tuple((rose[worse], better) for worse, better in losses if worse in rose)


def _learnt(run: RunHistory) -> bool:
    return len(run.columns) > 1 and any(run.columns.of("learns"))


def _of_group(group: str, runs: Sequence[RunHistory]) -> OwnReward:
    rewards, outcomes = ([ends_of(run.columns.of(name)) for run in runs] for name in ("reward", "outcome"))
    rose = sum(first is not None and last is not None and last > first for first, last in rewards)
    return OwnReward(group=group, runs=len(runs), rose=rose, reward=_mean(rewards), outcome=_mean(outcomes))


def _mean(ends: Sequence[Ends]) -> Ends:
    return mean(first for first, _ in ends), mean(last for _, last in ends)
