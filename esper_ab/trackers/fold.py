"""Fold of the journal for trackers: events in, subjects with their numbers out."""

from __future__ import annotations

from datetime import datetime

from esper_ab.design.design import rule
from esper_ab.journal.events import AnyEvent, EpisodeRecorded, ExperimentStarted, Incident, RunEvaluated, RunStarted
from esper_ab.journal.fold import History, begin
from esper_ab.journal.outcomes import mean
from esper_ab.trackers.numbers import (
    comparison_numbers,
    comparison_words,
    episode_numbers,
    evaluation_numbers,
    evaluation_words,
    experiment_id,
    experiment_settings,
    identity,
    run_settings,
    without_missing,
)
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.tracker import COMPARISON, Conclusion, EndState, Subject, Tracker


def unix_ms(wall_time: str) -> int:
    """Convert a journal's wall time (ISO 8601) to Unix milliseconds."""
    return round(datetime.fromisoformat(wall_time).timestamp() * 1000)


class Fold:
    """One pass over one journal for one tracker."""

    def __init__(self, first_event: ExperimentStarted, wall_time: str, tracking: Tracking, tracker: Tracker) -> None:
        """Start the fold. `wall_time`: the wall time of the journal's first line."""
        self.history: History = begin(first_event, keeps_records=False)
        self._tracker = tracker
        self._tags = tracking.tags
        self._id = experiment_id(first_event, wall_time)
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
                run = evaluation.run.name
                self._conclude(run, "finished", evaluation_numbers(self.history, run), evaluation_words(evaluation))
            case Incident(category="dropped_pair" | "cancelled") if event.run_name in self._subjects:
                self._conclude(event.run_name, "failed", {}, {"lost": event.detail})

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

    def _conclude(self, run: str, state: EndState, numbers: dict[str, float], words: dict[str, str]) -> None:
        """Conclude a run, once."""
        subject = self._subject(run)
        if run in self._over:
            return
        self._over.add(run)
        conclusion = Conclusion(
            step=self.history.runs[run].spec.episodes,
            numbers=numbers,
            words=words,
            state=state,
            at_ms=self._at_ms,
        )
        self._tracker.conclude(subject, conclusion)

    def _verdicts(self) -> Conclusion:
        """Return the results by `a-b/name`, each group's mean outcome, and the rule, measure, hash and final state."""
        # Imported here, because scipy would cost each tracker's process a second and, as long as the run lasts, memory.
        from esper_ab.analysis.analyse import analyse

        history = self.history
        analysis = analyse(history)
        end_event = history.ended
        outcome = history.outcome
        assert end_event is not None
        words: dict[str, str] = {}
        numbers: dict[str, float | None] = {}
        for comparison in analysis.comparisons:
            pair = f"{comparison.question.a}-{comparison.question.b}"
            words |= {f"{pair}/{name}": text for name, text in comparison_words(comparison).items()}
            numbers |= {f"{pair}/{name}": value for name, value in comparison_numbers(comparison).items()}
        words["rule"] = rule(history.design)
        words["result"] = analysis.result_hash
        words["measured"] = f"{outcome.title}; {outcome.better} is better"
        words["state"] = f"{end_event.status} {end_event.detail}" if end_event.detail else end_event.status
        for group in history.groups:
            runs = history.of_group(group)
            numbers[f"outcome/{group}"] = mean(analysis.outcomes[run.ref.name].outcome for run in runs)
        return Conclusion(
            step=history.replicates,
            numbers=without_missing(numbers),
            words=words,
            state=end_event.status,
            at_ms=self._at_ms,
        )
