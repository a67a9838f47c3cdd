"""History -> what a person wants to see during a run: recent numbers per group, paired differences so far. Pure."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.records import EpisodeRecord
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import episode_mean, held_out_accuracy, mean

RECENT = 5  # episodes of every run that count as recent
REWARD_LABEL = "reward (not comparable)"
DIFFERENCE_LABEL = "training accuracy so far, not the endpoint"


class GroupNow(msgspec.Struct, frozen=True, kw_only=True):
    """One group, averaged over the recent episodes of its started runs; None before the first."""

    group: str
    episodes: int  # recorded, over all runs
    of_episodes: int
    accuracy: float | None  # held-out, training, percent
    reward: float | None  # on the scale of the group's own mode
    params_added: float | None
    entropy: float | None
    seconds: float | None  # per episode


class DifferenceNow(msgspec.Struct, frozen=True, kw_only=True):
    """a - b in training accuracy over the pairs of runs that have both finished training. No inference."""

    a: str
    b: str
    pairs: int
    points: float | None


def recent_episodes(history: History, group: str) -> tuple[EpisodeRecord, ...]:
    """The last RECENT episodes of the group's latest replicate that has any."""
    runs = [run for run in history.of_group(group) if run.episodes]
    return runs[-1].curve()[-RECENT:] if runs else ()


def group_now(history: History, group: str) -> GroupNow:
    """Where `group` is."""
    records = recent_episodes(history, group)
    runs = history.of_group(group)
    return GroupNow(
        group=group,
        episodes=sum(len(run.episodes) for run in runs),
        of_episodes=sum(run.spec.episodes for run in runs if not (run.left_out or run.lost)),
        accuracy=mean(held_out_accuracy(record) for record in records),
        reward=mean(episode_mean(record, lambda env: env.reward_sum) for record in records),
        params_added=mean(episode_mean(record, lambda env: env.params_added) for record in records),
        entropy=mean(record.ppo.entropy for record in records if record.ppo is not None),
        seconds=mean(record.timing.total_s for record in records),
    )


def differences_now(history: History) -> tuple[DifferenceNow, ...]:
    """The planned comparisons; a run counts with its last RECENT training episodes, once all of them are recorded."""
    trained: dict[tuple[str, int], float] = {}
    for run in history.runs.values():
        if len(run.episodes) >= run.spec.episodes:
            accuracy = mean(held_out_accuracy(record) for record in run.curve()[-RECENT:])
            if accuracy is not None:
                trained[run.ref.group_id, run.ref.replicate] = accuracy
    found = []
    for contrast in history.design.comparisons:
        a, b = contrast.a, contrast.b
        both = [r for group, r in trained if group == a and (b, r) in trained]
        points = mean(trained[a, r] - trained[b, r] for r in both)
        found.append(DifferenceNow(a=a, b=b, pairs=len(both), points=points))
    return tuple(found)
