"""Fold of the journal for trackers: events in, subjects with their numbers out."""

from __future__ import annotations

from datetime import datetime

from esper_ab.design.design import rule
from esper_ab.journal.events import AnyEvent, EpisodeRecorded, ExperimentStarted, Incident, RunEvaluated, RunStarted
from esper_ab.journal.fold import History, begin
from esper_ab.journal.outcomes import mean
from esper_ab.trackers.numbers import (
    episode_numbers,
    evaluation_numbers,
    experiment_id,
    experiment_settings,
    identity,
    run_settings,
    without_missing,
)
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.tracker import COMPARISON, Conclusion, Subject, Tracker


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
                key=COMPARISON,
                id=identity(self._id, COMPARISON),
                group="",
                tags=(COMPARISON,),
                settings=experiment_settings(self.history),
                began_ms=self._began_ms,
            )
            self._tracker.begin(subject)
            self._tracker.conclude(subject, self._verdicts())
        self._tracker.close()

    def _subject(self, run: str) -> Subject:
        """Return the subject of a run; begin it on first use."""
        if run not in self._subjects:
            spec = self.history.runs[run].spec
            group = spec.ref.group_id
            self._subjects[run] = Subject(
                key=run,
                id=identity(self._id, run),
                group=group,
                tags=tuple(dict.fromkeys((group, *self._tags.get(group, ())))),
                settings=run_settings(self.history, spec),
                began_ms=self._at_ms,
            )
            self._tracker.begin(self._subjects[run])
        return self._subjects[run]

    def _conclude(self, run: str, values: dict[str, float], words: dict[str, str]) -> None:
        """Conclude a run, once."""
        subject = self._subject(run)
        if run in self._over:
            return
        self._over.add(run)
        conclusion = Conclusion(
            step=self.history.runs[run].spec.episodes,
            numbers=values,
            words=words,
            state="failed" if "lost" in words else "finished",
            at_ms=self._at_ms,
        )
        self._tracker.conclude(subject, conclusion)

    def _verdicts(self) -> Conclusion:
        """Return the results by `a-b/name`, each group's mean outcome, and the rule, measure, hash and final state."""
        # Imported here, because scipy would cost each tracker's process a second and, as long as the run lasts, memory.
        from esper_ab.analysis.analyse import analyse

        history = self.history
        analysis = analyse(self.history)
        ended = history.ended
        outcome = history.outcome
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
            "rule": rule(history.design),
            "result": analysis.result_hash,
            "measured": f"{outcome.title}; {outcome.better} is better",
            "state": " ".join(filter(None, (ended.status, ended.detail))),
        }
        for group in history.groups:
            numbers[f"outcome/{group}"] = mean(
                analysis.outcomes[run.ref.name].outcome for run in history.of_group(group)
            )
        return Conclusion(
            step=history.replicates,
            numbers=without_missing(numbers),
            words=words,
            state=ended.status,
            at_ms=self._at_ms,
        )
