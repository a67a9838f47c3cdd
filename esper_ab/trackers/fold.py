"""The journal for trackers: the tracker interface, the numbers in records, and a fold of events into subjects."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from esper_ab.contracts.errors import EsperError
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.records import EpisodeRecord, PPOUpdate
from esper_ab.design.design import rule
from esper_ab.journal.events import AnyEvent, EpisodeRecorded, ExperimentStarted, Incident, RunEvaluated, RunStarted
from esper_ab.journal.file import JOURNAL_NAME, Reading
from esper_ab.journal.fold import History, begin
from esper_ab.journal.load import follow
from esper_ab.journal.lock import holder
from esper_ab.journal.outcomes import episode_mean, mean, mean_outcome, measured, outcomes
from esper_ab.trackers.settings import Tracking

# --- tracker ---------------------------------------------------------------------------------------------------------

Scalar = bool | int | float | str
COMPARISON = "comparison"  # key of the subject that holds the experiment's results instead of a run


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One esper run, or the comparison; it becomes one run of a tracker."""

    key: str  # "shaped/0", or COMPARISON
    id: str  # 16 hexadecimal digits, the same whenever the journal is read
    group: str  # "" for the comparison
    tags: tuple[str, ...]
    settings: dict[str, Scalar]  # dotted keys
    began_ms: int  # Unix time


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """Final data of a subject."""

    step: int
    numbers: dict[str, float]
    words: dict[str, str]
    state: Literal["finished", "failed", "interrupted"]
    at_ms: int  # Unix time


class Tracker(Protocol):
    """A tracking tool. Calls are idempotent: a call repeated in this process or a later one is stored once.

    A method may raise any exception. The tracker's process then ends with a one-line report, and nothing else is
    affected.
    """

    where: str  # address for the user to open or give to the tool; "" until known

    def begin(self, subject: Subject) -> None:
        """Begin a subject; called before any other call about it."""

    def log(self, subject: Subject, step: int, numbers: dict[str, float], at_ms: int) -> None:
        """Store the numbers of one training episode."""

    def conclude(self, subject: Subject, conclusion: Conclusion) -> None:
        """Store a subject's final data. This ends a run; the comparison may be concluded again with more data."""

    def close(self) -> None:
        """Release all resources; called when the current end of the journal is reached."""


# --- numbers ---------------------------------------------------------------------------------------------------------
# The numbers in records, by name, for trackers. Pure. Missing values (None) are left out.


_ID_DIGITS = 16
_OF_THE_RUN = ("rng_seed", "task", "n_envs", "episodes", "steps", "eval_episodes", "rng_label")


def identity(*parts: str) -> str:
    """Return 16 hexadecimal digits of a hash of `parts`."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_ID_DIGITS]


def experiment_id(started: ExperimentStarted, began: str) -> str:
    """Return an id that is equal for all copies of a journal and new for each execution of a plan.

    `began`: the journal's first wall time.
    """
    return identity(started.plan.digest, began)


def episode_numbers(record: EpisodeRecord) -> dict[str, float]:
    """Return the numbers of one training episode: means over environments, numbers of the policy update, wall times."""
    names = record.envs[0].measures if record.envs else ()
    return _there({
        "train/outcome": mean_outcome(record),
        "train/reward": episode_mean(record, lambda env: env.reward_sum),
        "train/failed": episode_mean(record, lambda env: float(env.failed)),  # share
        **{f"measure/{name}": episode_mean(record, partial(measured, name)) for name in names},
        **({} if record.ppo is None else dict(_update(record.ppo))),
        **{f"time/{name}": getattr(record.timing, name) for name in record.timing.__struct_fields__},
    })


def _update(ppo: PPOUpdate) -> Iterator[tuple[str, float | None]]:
    for name in ppo.__struct_fields__:
        if name != "heads":
            value = getattr(ppo, name)
            yield f"ppo/{name}", None if value is None else float(value)
    for head, use in ppo.heads.items():
        yield f"ppo/head/{head}/entropy", use.entropy
        yield f"ppo/head/{head}/learnable", use.learnable


def evaluation_numbers(history: History, run: str) -> dict[str, float]:
    """Return the evaluation results of one run, in the report's units."""
    outcome = outcomes(replace(history, runs={run: history.runs[run]}))[run]
    numbers = {
        f"evaluation/{name}": value
        for name in outcome.__struct_fields__
        if isinstance(value := getattr(outcome, name), float | int)
    }
    measures = {f"evaluation/measure/{name}": value for name, value in outcome.measures.items()}
    rewards = {f"evaluation/reward/{mode}": value for mode, value in outcome.rewards.items()}
    return _there(numbers | measures | rewards)


def run_settings(history: History, spec: RunSpec) -> dict[str, Scalar]:
    """Return all settings of one run, by dotted key."""
    return {
        "group": spec.ref.group_id, "replicate": spec.ref.replicate, "device": spec.ref.device,
        "experiment": history.plan.experiment.name, "plan": history.plan.digest,
        **{name: getattr(spec, name) for name in _OF_THE_RUN}, "slots": ",".join(spec.slots),
        **dict(_flat(msgspec.to_builtins(spec.settings))),
        **dict(_flat({"arithmetic": msgspec.to_builtins(spec.arithmetic)})),
    }


def experiment_settings(history: History) -> dict[str, Scalar]:
    """Return all settings common to the groups, by dotted key, and the groups' differences."""
    tree = msgspec.to_builtins(history.plan.experiment)
    tree["groups"] = ",".join(history.groups)
    differences = {f"differs.{one.key}": json.dumps(one.values) for one in history.plan.differences}
    return {"plan": history.plan.digest, **dict(_flat(tree)), **differences}


def _flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Scalar]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value if isinstance(value, bool | int | float | str) else json.dumps(value)


def _there(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items() if value is not None}


# --- fold ------------------------------------------------------------------------------------------------------------
# Fold of the journal for trackers: events in, subjects with their numbers out.


def unix_ms(wall_time: str) -> int:
    """Convert a journal's wall time (ISO 8601) to Unix milliseconds."""
    return round(datetime.fromisoformat(wall_time).timestamp() * 1000)


class Fold:
    """One pass over one journal for one tracker."""

    def __init__(self, started: ExperimentStarted, wall_time: str, tracking: Tracking, tracker: Tracker) -> None:
        """Start the fold. `wall_time`: the wall time of the journal's first line."""
        self.history: History = begin(started, keeps_records=False)
        self._tracker = tracker
        self._tags = tracking.tags
        self._id = experiment_id(started, wall_time)
        self._began_ms = self._at_ms = unix_ms(wall_time)
        self._subjects: dict[str, Subject] = {}  # begun, by run
        self._over: set[str] = set()

    def add(self, event: AnyEvent, wall_time: str) -> None:
        """Pass the consequences of one event to the tracker; raises whatever the tracker raises."""
        self.history.add(event)
        self._at_ms = unix_ms(wall_time)
        match event:
            case RunStarted():
                self._subject(event.run.name)
            case EpisodeRecorded(record=record):
                subject = self._subject(record.run.name)
                self._tracker.log(subject, record.episode, episode_numbers(record), self._at_ms)
            case RunEvaluated(record=evaluation):
                values = evaluation_numbers(self.history, evaluation.run.name)
                words = {name: getattr(evaluation, name) for name in ("policy_file", "policy_sha256", "digest")}
                self._conclude(evaluation.run.name, values, words)
            case Incident(category="dropped_pair" | "cancelled") if event.run_name in self._subjects:
                self._conclude(event.run_name, {}, {"lost": event.detail})

    def finish(self) -> None:
        """Conclude the comparison if the experiment has ended, and close the tracker."""
        if self.history.ended is not None:
            subject = Subject(
                key=COMPARISON, id=identity(self._id, COMPARISON), group="", tags=(COMPARISON,),
                settings=experiment_settings(self.history), began_ms=self._began_ms,
            )  # fmt: skip
            self._tracker.begin(subject)
            self._tracker.conclude(subject, self._verdicts())
        self._tracker.close()

    def _subject(self, run: str) -> Subject:
        """Return the subject of a run; begin it on first use."""
        if run not in self._subjects:
            spec = self.history.runs[run].spec
            group = spec.ref.group_id
            self._subjects[run] = Subject(
                key=run, id=identity(self._id, run), group=group,
                tags=tuple(dict.fromkeys((group, *self._tags.get(group, ())))),
                settings=run_settings(self.history, spec), began_ms=self._at_ms,
            )  # fmt: skip
            self._tracker.begin(self._subjects[run])
        return self._subjects[run]

    def _conclude(self, run: str, values: dict[str, float], words: dict[str, str]) -> None:
        """Conclude a run, once."""
        subject = self._subject(run)
        if run in self._over:
            return
        self._over.add(run)
        conclusion = Conclusion(
            step=self.history.runs[run].spec.episodes, numbers=values, words=words,
            state="failed" if "lost" in words else "finished", at_ms=self._at_ms,
        )  # fmt: skip
        self._tracker.conclude(subject, conclusion)

    def _verdicts(self) -> Conclusion:
        """Return the results by `a-b/name`, each group's mean outcome, and the rule, measure, hash and final state."""
        # Imported here, because scipy would cost each tracker's process a second and, as long as the run lasts, memory.
        from esper_ab.analysis.analyse import analyse

        history, analysis = self.history, analyse(self.history)
        ended, outcome = history.ended, history.outcome
        assert ended is not None
        words: dict[str, str] = {}
        numbers: dict[str, float | None] = {}
        for one in analysis.comparisons:
            pair = f"{one.question.a}-{one.question.b}"
            words |= {f"{pair}/{name}": str(getattr(one, name)) for name in ("verdict", "headline", "sentence")}
            words[f"{pair}/warnings"] = " ".join(one.warnings)
            numbers |= {f"{pair}/{name}": getattr(one, name) for name in ("estimate", "low", "high", "used")}
            hedges = one.descriptive["hedges_g"]
            numbers[f"{pair}/hedges_g"] = hedges and hedges.g
        words |= {
            "rule": rule(history.design), "result": analysis.result_hash,
            "measured": f"{outcome.title}; {outcome.better} is better",
            "state": " ".join(filter(None, (ended.status, ended.detail))),
        }  # fmt: skip
        for group in history.groups:
            numbers[f"outcome/{group}"] = mean(
                analysis.outcomes[run.ref.name].outcome for run in history.of_group(group)
            )
        return Conclusion(
            step=history.replicates, numbers=_there(numbers), words=words, state=ended.status, at_ms=self._at_ms
        )


# --- following -------------------------------------------------------------------------------------------------------
# Follows one journal for one tracker, event by event: the journal is the queue, so nothing waits in memory.
#
# Only verified lines are passed on. The writer of the journal is not involved.


_POLL_S = 0.5
_FIRST_LINE_S = 30.0  # between the experiment directory and the first line of its journal


def tell(
    experiment_dir: Path, tracking: Tracking, make: Callable[[str, str], Tracker], moved: Callable[[int], None], *,
    live: bool,
) -> None:  # fmt: skip
    """Pass on all of the journal of `experiment_dir` to a tracker. `live`: continue until no process holds the folder.

    `make` gets the experiment's name and the UTC date of its start, YYYYMMDD. `moved` gets the number of lines passed
    on so far, after every event. Raises JournalError at a damaged line, and any exception that the tracker raises.
    """
    reading, first = _begin(experiment_dir, patience_s=_FIRST_LINE_S if live else 0.0)
    began = reading.wall_time
    tracker = make(first.plan.experiment.name, f"{datetime.fromisoformat(began):%Y%m%d}")
    fold = Fold(first, began, tracking, tracker)
    while True:
        held = holder(experiment_dir) is not None  # before reading, so that no last event is missed
        for event in reading:
            fold.add(event, reading.wall_time)
            moved(reading.lines)
        if not (live and held):
            break
        time.sleep(_POLL_S)
    fold.finish()
    moved(reading.lines)


def _begin(experiment_dir: Path, patience_s: float) -> tuple[Reading, ExperimentStarted]:
    """Open the journal and read its first line, waiting up to `patience_s` seconds for it."""
    deadline = time.monotonic() + patience_s
    while True:
        if (experiment_dir / JOURNAL_NAME).is_file():
            reading = follow(experiment_dir / JOURNAL_NAME)
            first = next(reading, None)
            if isinstance(first, ExperimentStarted):
                return reading, first
        if time.monotonic() >= deadline:
            raise EsperError(f"{experiment_dir / JOURNAL_NAME} does not begin with experiment_started")
        time.sleep(_POLL_S)
