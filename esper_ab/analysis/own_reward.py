"""How each learning group's own reward changed in training, beside the outcome. The group learns from the reward and
never sees the outcome. Pure; descriptive, never a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.analysis.conduct import learners
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import Ends, ends_of, mean
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.verdict import Verdict

_WORSE = (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)
_BETTER = (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)


@dataclass(frozen=True, kw_only=True)
class OwnReward:
    """Rewards of one group: means over its runs, per training episode in one environment."""

    group: str
    runs: int  # with at least two episodes
    rose: int  # how many of these runs had a higher own reward in the last tenth than in the first
    reward: Ends  # on the scale of the group's own mode
    outcome: Ends


def own_rewards(history: History) -> tuple[OwnReward, ...]:
    """Return one `OwnReward` per group that learns, in the order of the experiment."""
    rewards = []
    for group, runs in learners(history).items():
        usable_runs = [run for run in runs if len(run.columns) > 1]
        if usable_runs:
            rewards.append(_reward_of_group(group, usable_runs))
    return tuple(rewards)


def misled(rewards: Sequence[OwnReward], comparisons: Sequence[Comparison]) -> tuple[tuple[OwnReward, str], ...]:
    """Return each group that has a worse outcome than another group although its own reward rose in most of its runs.

    Each entry is that group's `OwnReward` and the name of the better group.
    """
    rising_rewards = {reward.group: reward for reward in rewards if 2 * reward.rose > reward.runs}
    a_worse = [comparison.question for comparison in comparisons if comparison.verdict in _WORSE]
    b_worse = [comparison.question for comparison in comparisons if comparison.verdict in _BETTER]
    losses = [(question.a, question.b) for question in a_worse]  # the worse group and the better one
    losses += [(question.b, question.a) for question in b_worse]
    return tuple(
        (rising_rewards[worse_group], better_group)
        for worse_group, better_group in losses
        if worse_group in rising_rewards
    )


def _reward_of_group(group: str, runs: Sequence[RunHistory]) -> OwnReward:
    rewards = [ends_of(run.columns.of("reward")) for run in runs]
    outcomes = [ends_of(run.columns.of("outcome")) for run in runs]
    rising_runs = 0
    for first_reward, last_reward in rewards:
        if first_reward is not None and last_reward is not None and last_reward > first_reward:
            rising_runs += 1
    return OwnReward(group=group, runs=len(runs), rose=rising_runs, reward=_mean(rewards), outcome=_mean(outcomes))


def _mean(ends: Sequence[Ends]) -> Ends:
    first_mean = mean(first_mean for first_mean, _ in ends)
    last_mean = mean(last_mean for _, last_mean in ends)
    return first_mean, last_mean
