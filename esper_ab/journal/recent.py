"""History -> numbers of a live view: recent means of training per group, outcomes of complete pairs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from esper_ab.contracts.evaluation import episode_sizes
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import mean, mean_known, outcome_of

RECENT = 5  # number of recent episodes, from the group's newest run that has any
REWARD_LABEL = "reward (not comparable)"
DIFFERENCE_LABEL = "outcome so far; only a look decides"


class GroupNow(msgspec.Struct, frozen=True, kw_only=True):
    """Current numbers of one group: means over its newest run's last RECENT episodes; None before the first episode."""

    group: str
    episodes: int  # recorded, over all runs that were neither left out nor lost
    of_episodes: int  # planned, over the same runs
    outcome: float | None  # of training
    reward: float | None  # on the scale of the group's own mode
    entropy: float | None
    seconds: float | None  # per episode


class DifferenceNow(msgspec.Struct, frozen=True, kw_only=True):
    """Mean of a - b in the outcome over the complete pairs, unadjusted and without inference."""

    a: str
    b: str
    pairs: int  # complete ones
    difference: float | None  # None before the first


def group_now(history: History, group: str) -> GroupNow:
    """Return the current numbers of `group`."""
    runs = history.of_group(group)
    counted_runs = [run for run in runs if not (run.left_out or run.lost)]
    begun_columns = [run.columns for run in runs if len(run.columns)]

    def recent_mean(name: str) -> float | None:
        """Return the mean over the last episodes of the latest replicate that has any."""
        return mean_known(begun_columns[-1].of(name)[-RECENT:]) if begun_columns else None

    return GroupNow(
        group=group,
        episodes=sum(len(run.columns) for run in counted_runs),
        of_episodes=sum(run.spec.episodes for run in counted_runs),
        outcome=recent_mean("outcome"),
        reward=recent_mean("reward"),
        entropy=recent_mean("entropy"),
        seconds=recent_mean("total_s"),
    )


def differences_now(history: History) -> tuple[DifferenceNow, ...]:
    """Return the current differences of the planned comparisons.

    Returns () before the first look, unless the rule may decide after every seed.
    """
    if not history.looks and history.design.anytime_after is None:
        return ()
    outcome_kind = history.design.outcome_over
    outcomes = dict[tuple[str, int], float]()
    for run in history.runs.values():
        if (value := outcome_of(run, outcome_kind)) is not None:
            outcomes[run.ref.group_id, run.ref.replicate] = value
    return tuple(_difference_now(contrast.a, contrast.b, outcomes) for contrast in history.design.comparisons)


def _difference_now(a: str, b: str, outcomes: Mapping[tuple[str, int], float]) -> DifferenceNow:
    """Return the current difference of two groups; `outcomes` are by group and replicate."""
    differences = []
    for (group, replicate), outcome in outcomes.items():
        if group == a and (b, replicate) in outcomes:
            differences.append(outcome - outcomes[b, replicate])
    return DifferenceNow(a=a, b=b, pairs=len(differences), difference=mean(differences))


def evaluation_work(spec: RunSpec) -> float:
    """Return how many episodes the evaluation plays. A learner plays the first episode again, with greedy actions."""
    rounds = len(episode_sizes(spec.eval_episodes, spec.n_envs))
    if spec.ref.controller == "ppo":
        rounds += 1
    return float(rounds)


def worked_s(history: History) -> float:
    """Return the longest working time of any lane in the records so far, in seconds."""
    lanes: defaultdict[str, float] = defaultdict(float)
    for run in history.runs.values():
        evaluation_s = run.evaluation.timing.total_s if run.evaluation else 0.0
        lanes[run.ref.device] += (run.warm_up_s or 0.0) + sum(run.columns.of("total_s")) + evaluation_s
    return max(lanes.values(), default=0.0)
