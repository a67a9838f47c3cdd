"""Execution of each group's runs: amounts, times, faults. Pure; descriptive, without tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.contracts.records import EnvEpisode
from esper_ab.journal.events import Incident
from esper_ab.journal.fold import History, RunHistory

# Category of an incident -> its name in a sentence. The other categories have findings of their own.
FAULTS = {
    "worker_death": "worker death",
    "hung_worker": "hung worker",
    "restart": "restart",
    "start_delayed": "delayed start",
    "bad_message": "unreadable message",
    "damaged_checkpoint": "damaged checkpoint",
    "cold_start": "cold start",
}


class Conduct(msgspec.Struct, frozen=True, kw_only=True):
    """Execution of one group's runs. Times are wall time in seconds; None if nothing is recorded."""

    group: str
    runs: int  # planned so far
    finished: int  # evaluated
    left_out: int  # never started, because every comparison of the group had been decided
    lost: int  # given up after failures of their own
    cancelled: int  # given up because another run of their replicate was lost
    episodes: int  # training episodes recorded
    env_steps: int  # recorded in training
    evaluation_episodes: int
    wall_s: float  # sum over the recorded training episodes, without those of reused runs
    episode_s: float | None  # median over all training episodes except the first of each run
    warm_up_s: float | None  # median over runs
    first_episode_s: float | None  # median over runs
    first_over_rest: float | None  # first_episode_s / episode_s
    decisions_per_s: float | None  # env steps per second of wall time: the throughput of one run
    faults: dict[str, int]  # number of incidents by category; only categories of FAULTS that occurred
    failed: int  # environments that failed in training or evaluation; they keep their outcome


def conduct(history: History) -> tuple[Conduct, ...]:
    """Return one `Conduct` per group, in the order of the experiment."""
    return tuple(_group_conduct(group, history.of_group(group), history.incidents) for group in history.groups)


def evaluated_envs(run: RunHistory) -> list[EnvEpisode]:
    """Return every evaluation episode of every environment, sampled and greedy."""
    if run.evaluation:
        return [episode.result for episode in run.evaluation.episodes]
    return []


def learners(history: History) -> dict[str, list[RunHistory]]:
    """Return, for every group with recorded policy updates, the runs that have any."""
    by_group = {}
    for group in history.groups:
        runs = [run for run in history.of_group(group) if any(run.columns.of("learns"))]
        if runs:
            by_group[group] = runs
    return by_group


def _group_conduct(group: str, runs: Sequence[RunHistory], incidents: Sequence[Incident]) -> Conduct:
    names = {run.ref.name for run in runs}
    faults = Counter[str](entry.category for entry in incidents if entry.run_name in names)
    trained_runs = [run for run in runs if run.reused is None]  # times of another day say nothing of this experiment
    seconds = [run.columns.of("total_s") for run in trained_runs if len(run.columns)]
    wall_s = sum(sum(run_seconds) for run_seconds in seconds)
    timed_steps = sum(int(sum(run.columns.of("steps"))) for run in trained_runs)
    env_steps = 0
    failed_count = 0
    evaluated_results: list[EnvEpisode] = []
    for run in runs:
        env_steps += int(sum(run.columns.of("steps")))
        failed_count += int(sum(run.columns.of("failed")))
        evaluated_results += evaluated_envs(run)
    later_seconds = [run_s for run_seconds in seconds for run_s in run_seconds[1:]]
    episode_s = _median(later_seconds)
    median_first_s = _median([run_seconds[0] for run_seconds in seconds])
    cold_ratio = None
    if median_first_s is not None and episode_s:
        cold_ratio = median_first_s / episode_s
    decisions_per_s = None
    if wall_s > 0:
        decisions_per_s = timed_steps / wall_s
    return Conduct(
        group=group,
        runs=len(runs),
        finished=sum(run.evaluation is not None for run in runs),
        left_out=sum(run.left_out for run in runs),
        lost=sum(run.lost and run.failed for run in runs),
        cancelled=sum(run.lost and not run.failed for run in runs),
        episodes=sum(len(run.columns) for run in runs),
        env_steps=env_steps,
        evaluation_episodes=len(evaluated_results),
        wall_s=wall_s,
        episode_s=episode_s,
        warm_up_s=_median([run.warm_up_s for run in runs if run.warm_up_s is not None]),
        first_episode_s=median_first_s,
        first_over_rest=cold_ratio,
        decisions_per_s=decisions_per_s,
        faults={category: faults[category] for category in FAULTS if faults[category]},
        failed=failed_count + sum(env.failed for env in evaluated_results),
    )


def _median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return float(np.median(values))
