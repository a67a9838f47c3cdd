"""Numbers of each run that may be compared between groups. Pure; no numpy, so the live view may use it.

The outcome is one number per run: by default the mean outcome over all environments and sampled episodes of the
evaluation. Rewards are also listed. Every reward mode has its own scale, so two rewards are compared only if their mode
is the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from esper_ab.contracts.measures import episode_sizes
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord, RunRef
from esper_ab.contracts.wording import counted, visible_line
from esper_ab.journal.events import Incident
from esper_ab.journal.fold import History, RunHistory

Ends = tuple[float | None, float | None]  # mean of the first tenth of a run's episodes, and of the last


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of one run; None for a number that does not exist or is not known yet."""

    run: RunRef
    outcome: float | None  # declared by the plan; the number that is compared
    evaluated: float | None  # mean over the evaluation, by the trained policy's sampled actions
    greedy: float | None  # the same by its greedy actions
    failed: float | None  # share of the evaluation's environments that failed
    entropy_change: float | None  # nats: last tenth of the episodes minus the first
    training_area: float | None  # mean outcome over all training episodes
    measures: dict[str, float | None]  # by declared name: means over the evaluation, sampled actions
    rewards: dict[str, float | None]  # evaluation reward under every mode
    digest: str | None  # of the evaluation record


def mean(values: Iterable[float | None]) -> float | None:
    """Return the exactly rounded mean of the values that are not None; None if there are none or one is not finite."""
    return _finite_mean([value for value in values if value is not None])


def mean_known(values: Iterable[float]) -> float | None:
    """Return the exactly rounded mean of the values that are not NaN (absent in `Columns`); None if there are none."""
    return _finite_mean([value for value in values if value == value])


def _finite_mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values and all(map(math.isfinite, values)) else None


def ends_of(column: Sequence[float]) -> Ends:
    """Return the means of the first and the last tenth of a column."""
    part = math.ceil(len(column) / 10)
    return mean_known(column[:part]), mean_known(column[-part:])


def episode_mean(record: EpisodeRecord, value: Callable[[EnvEpisode], float | None]) -> float | None:
    """Return the mean of `value` over the environments of one episode."""
    return mean(value(env) for env in record.envs)


def mean_outcome(record: EpisodeRecord | EvaluationRecord | None) -> float | None:
    """Return the mean outcome over a record's environments; for an evaluation, over sampled actions only."""
    if isinstance(record, EpisodeRecord):
        return episode_mean(record, lambda env: env.outcome)
    return _evaluated(record, "sampled", lambda env: env.outcome)


def outcome_of(run: RunHistory, declared: str) -> float | None:
    """Return the outcome by which a run is compared; `declared` as in the design.

    Returns None until the run is evaluated and all its records exist. Also returns None if the run was given up or the
    number is not finite.
    """
    if run.evaluation is None or run.lost:
        return None
    if declared == "evaluation":
        return mean_outcome(run.evaluation)
    curve = run.columns.of("outcome")
    if len(curve) < run.spec.episodes:
        return None
    return ends_of(curve)[1] if declared == "last-tenth" else mean_known(curve)


def entropy_change(run: RunHistory) -> float | None:
    """Return the policy entropy of the last tenth of episodes minus that of the first, nats; None below two episodes.
    """
    columns = run.columns
    entropies = [value for value, learns in zip(columns.of("entropy"), columns.of("learns"), strict=True) if learns]
    if len(entropies) < 2:
        return None
    first, last = ends_of(entropies)
    return None if first is None or last is None else last - first


def outcomes(history: History) -> dict[str, RunOutcome]:
    """Return the outcome of every run by name, in plan order."""
    return {name: _outcome(run, history.design.outcome_over) for name, run in history.runs.items()}


def _evaluated(
    evaluation: EvaluationRecord | None, actions: str, value: Callable[[EnvEpisode], float | None]
) -> float | None:
    if evaluation is None:
        return None
    return mean(value(played.outcome) for played in evaluation.episodes if played.actions == actions)


def _outcome(run: RunHistory, declared: str) -> RunOutcome:
    evaluation = run.evaluation
    sampled = partial(_evaluated, evaluation, "sampled")
    return RunOutcome(
        run=run.ref, outcome=outcome_of(run, declared), evaluated=mean_outcome(evaluation),
        greedy=_evaluated(evaluation, "greedy", lambda env: env.outcome), failed=sampled(lambda env: float(env.failed)),
        entropy_change=entropy_change(run), training_area=mean_known(run.columns.of("outcome")),
        measures={name: sampled(partial(measured, name)) for name in run.columns.measures},
        rewards=_rewards(evaluation), digest=evaluation.digest if evaluation else None,
    )  # fmt: skip


def measured(name: str, env: EnvEpisode) -> float | None:
    """Return a declared measure of an environment's episode."""
    return env.measures[name]


def _rewards(evaluation: EvaluationRecord | None) -> dict[str, float | None]:
    if evaluation is None:
        return {}
    sampled = [played.rewards for played in evaluation.episodes if played.actions == "sampled"]
    modes = sorted({mode for rewards in sampled for mode in rewards})
    return {mode: mean(rewards.get(mode) for rewards in sampled) for mode in modes}


# --- recent ----------------------------------------------------------------------------------------------------------
# History -> numbers of a live view: recent means of training per group, outcomes of complete pairs. Pure.


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
    latest = [run.columns for run in runs if len(run.columns)][-1:]  # the latest replicate with episodes

    def recent(name: str) -> float | None:
        return mean_known(value for columns in latest for value in columns.of(name)[-RECENT:])

    return GroupNow(
        group=group, episodes=sum(len(run.columns) for run in counted_runs),
        of_episodes=sum(run.spec.episodes for run in counted_runs),
        outcome=recent("outcome"), reward=recent("reward"), entropy=recent("entropy"), seconds=recent("total_s"),
    )


def differences_now(history: History) -> tuple[DifferenceNow, ...]:
    """Return the current differences of the planned comparisons.

    Returns () before the first look, unless the rule may decide after every seed.
    """
    if not history.looks and history.design.anytime_after is None:
        return ()
    declared, outcomes = history.design.outcome_over, dict[tuple[str, int], float]()
    for run in history.runs.values():
        if (value := outcome_of(run, declared)) is not None:
            outcomes[run.ref.group_id, run.ref.replicate] = value
    differences = {
        (a, b): [end - outcomes[b, replicate] for (group, replicate), end in outcomes.items()
                 if group == a and (b, replicate) in outcomes]
        for a, b in (contrast.groups for contrast in history.design.comparisons)
    }  # fmt: skip
    return tuple(DifferenceNow(a=a, b=b, pairs=len(d), difference=mean(d)) for (a, b), d in differences.items())


def evaluation_work(spec: RunSpec) -> float:
    """Return how many episodes the evaluation plays. A learner plays the first episode again, with greedy actions."""
    return float(len(episode_sizes(spec.eval_episodes, spec.n_envs)) + (spec.ref.controller == "ppo"))


def worked_s(history: History) -> float:
    """Return the longest working time of any lane in the records so far, in seconds."""
    lanes: defaultdict[str, float] = defaultdict(float)
    for run in history.runs.values():
        evaluated = run.evaluation.timing.total_s if run.evaluation else 0.0
        lanes[run.ref.device] += (run.warm_up_s or 0.0) + sum(run.columns.of("total_s")) + evaluated
    return max(lanes.values(), default=0.0)


# --- alarms ----------------------------------------------------------------------------------------------------------
# Lines for incidents in a live view: a pathology of updates is shown once per group, then counted. Pure.


class Alarms:
    """Formats incidents: call `line` for each incident, and `counts` at the end."""

    def __init__(self, before: History | None) -> None:
        """Count the pathologies in `before`, the history before the view opened, without showing them again."""
        self._runs: dict[tuple[str, str], dict[str, None]] = {}  # group and kind -> runs, in order
        self._repeated: set[tuple[str, str]] = set()  # seen again after they were shown
        if before is not None:
            for entry in before.incidents:
                if entry.category == "ppo_pathology":
                    self._runs.setdefault(_key(entry, before), {}).setdefault(entry.run_name)

    def line(self, entry: Incident, history: History) -> str:
        """Return the line to show; "" for a pathology that an earlier run of the group already had."""
        if entry.category == "ppo_pathology":
            befell = self._runs.setdefault(_key(entry, history), {})
            befell.setdefault(entry.run_name)
            if len(befell) > 1:
                self._repeated.add(_key(entry, history))
                return ""
        about = f" {entry.run_name}" if entry.run_name else ""
        return f"! {entry.category}{about}: {visible_line(entry.detail)}"

    def counts(self) -> list[str]:
        """Return a line with the number of runs for each pathology of which `line` showed only a group's first run."""
        return [
            f"! ppo_pathology {group}: {visible_line(kind)} in {counted(len(runs), 'run')}, {next(iter(runs))} first"
            for (group, kind), runs in self._runs.items()
            if (group, kind) in self._repeated
        ]


def _key(entry: Incident, history: History) -> tuple[str, str]:
    return history.runs[entry.run_name].ref.group_id, str(entry.confounder)
