"""Validate messages from workers: the Hello, and reports, each of which brings its run to a milestone.

Their types are checked when they are decoded, which includes that every number is finite (contracts/records.py).
"""

from __future__ import annotations

from esper_ab.contracts import records
from esper_ab.contracts.checkpoint_files import is_file_of
from esper_ab.contracts.evaluation import episode_sizes
from esper_ab.contracts.measures import TaskMeasures
from esper_ab.contracts.messages import PROTOCOL, EpisodeFinished, Evaluated, Hello, Ready
from esper_ab.contracts.worker_order import RunSpec, WorkerOrder

Report = Ready | EpisodeFinished | Evaluated


class Rejected(ValueError):
    """Raised for a well-formed message that cannot be right; the text gives the reason in one line."""


def check_hello(hello: Hello, order: WorkerOrder) -> None:
    """Raise Rejected unless the worker matches its order and speaks this protocol version."""
    if hello.protocol != PROTOCOL:
        raise Rejected(f"speaks protocol {hello.protocol}, not {PROTOCOL}: install the same esper_ab everywhere")
    if (hello.worker, hello.incarnation) != (order.worker, order.incarnation):
        raise Rejected(f"calls itself {hello.worker}/{hello.incarnation}")
    if hello.uuids != order.lane.uuids:
        raise Rejected(f"has devices {hello.uuids}, but its lane {order.lane.name} is {order.lane.uuids}")
    if order.lane.titles and hello.titles != order.lane.titles:
        raise Rejected(f"has devices of kind {hello.titles}, but lane {order.lane.name} is of {order.lane.titles}")


def milestone_of(report: Report, spec: RunSpec, measures: TaskMeasures) -> int:
    """Return the milestone to which `report` brings its run.

    Raises Rejected unless the report is about this run, complete, and has `measures`.
    """
    if report.run != spec.ref:
        raise Rejected(f"reports about {report.run}, but was assigned {spec.ref}")
    if isinstance(report, Ready):
        if not 0 <= report.milestone <= spec.episodes:
            raise Rejected(f"says it is ready after {report.milestone} of {spec.episodes} episodes")
        return report.milestone
    if report.record.run != spec.ref:
        raise Rejected(f"sent a record of {report.record.run} for {spec.ref}")
    _check_measures(report, measures)
    if isinstance(report, Evaluated):
        if report.record.policy_file != spec.policy_file:
            raise Rejected(f"saved its policy as {report.record.policy_file}, not {spec.policy_file}")
        _check_evaluation(report.record, spec)
        return spec.episodes + 1
    if not 0 <= report.record.episode < spec.episodes:
        raise Rejected(f"sent episode {report.record.episode} of {spec.episodes}")
    _check_envs([env.env for env in report.record.envs], spec.n_envs)
    _check_checkpoint(report.checkpoint, spec.ref, report.record.episode + 1)
    return report.record.episode + 1


def _check_envs(envs: list[int], n_envs: int) -> None:
    if sorted(envs) != list(range(n_envs)):
        raise Rejected(f"sent a record of environments {sorted(envs)} instead of 0 to {n_envs - 1}, each exactly once")


def _check_measures(report: EpisodeFinished | Evaluated, measures: TaskMeasures) -> None:
    """Check that every environment has the plan's measures, in order, and a possible outcome.

    A training rollout in which no episode ended has no outcome.
    """
    record = report.record
    names = measures.names
    envs = record.envs if isinstance(record, records.EpisodeRecord) else [episode.result for episode in record.episodes]
    for env in envs:
        if tuple(env.measures) != names:
            raise Rejected(f"measured {', '.join(env.measures) or 'nothing'} instead of {', '.join(names)}")
        if env.outcome is None:
            if isinstance(record, records.EvaluationRecord):
                raise Rejected(f"evaluated environment {env.env} without an outcome")
        elif not measures.outcome.possible(env.outcome):
            outcome = measures.outcome
            raise Rejected(f"sent {outcome.label} {env.outcome:g}, outside the range {outcome.low} to {outcome.high}")


def _check_evaluation(record: records.EvaluationRecord, spec: RunSpec) -> None:
    """Check that each planned episode occurs exactly once; other episodes would give the outcome another variance."""
    sizes = episode_sizes(spec.eval_episodes, spec.n_envs)
    planned_numbers = [(episode, env) for episode, size in enumerate(sizes) for env in range(size)]
    evaluated_numbers = {
        kind: [
            (played_episode.episode, played_episode.result.env)
            for played_episode in record.episodes
            if played_episode.actions == kind
        ]
        for kind in ("sampled", "greedy")
    }
    greedy_numbers = set(evaluated_numbers["greedy"])
    if (
        sorted(evaluated_numbers["sampled"]) != planned_numbers
        or not greedy_numbers <= set(planned_numbers)
        or len(greedy_numbers) < len(evaluated_numbers["greedy"])
    ):
        raise Rejected(f"did not evaluate each of the {spec.eval_episodes} planned episodes exactly once")


def _check_checkpoint(checkpoint: records.Checkpoint | None, run: records.RunRef, milestone: int) -> None:
    """Check that the checkpoint belongs to this run and milestone, as another worker may load it."""
    if checkpoint is None:
        return
    if checkpoint.milestone != milestone or not is_file_of(run, checkpoint):
        checkpoint_words = f"a checkpoint after episode {checkpoint.milestone - 1} as {checkpoint.file}"
        raise Rejected(f"sent {checkpoint_words} with the record of episode {milestone - 1} of {run.name}")
