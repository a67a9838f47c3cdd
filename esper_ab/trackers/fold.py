"""Fold of the journal for trackers: events in, subjects with their numbers out."""

from __future__ import annotations

from datetime import datetime

from esper_ab.journal.events import AnyEvent, EpisodeRecorded, ExperimentStarted, Incident, RunEvaluated, RunStarted
from esper_ab.journal.fold import History, begin
from esper_ab.trackers import numbers
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.subject import COMPARISON, Conclusion, Subject, Tracker


def unix_ms(wall_time: str) -> int:
    """Return Unix milliseconds of a journal's wall time, ISO 8601."""
    return round(datetime.fromisoformat(wall_time).timestamp() * 1000)


class Fold:
    """One pass over one journal for one tracker."""

    def __init__(self, started: ExperimentStarted, wall_time: str, tracking: Tracking, tracker: Tracker) -> None:
        """Start the fold; `wall_time`: that of the first line."""
        self.history: History = begin(started, keeps_records=False)
        self._tracker = tracker
        self._tags = tracking.tags
        self._id = numbers.experiment_id(started, wall_time)
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
                self._tracker.log(subject, record.episode, numbers.episode_numbers(record), self._at_ms)
            case RunEvaluated(record=evaluation):
                values = numbers.evaluation_numbers(self.history, evaluation.run.name)
                words = {name: getattr(evaluation, name) for name in ("policy_file", "policy_sha256", "digest")}
                self._conclude(evaluation.run.name, values, words)
            case Incident(category="dropped_pair" | "cancelled") if event.run_name in self._subjects:
                self._conclude(event.run_name, {}, {"lost": event.detail})

    def finish(self) -> None:
        """Conclude the comparison if the experiment has ended, and close the tracker."""
        if self.history.ended is not None:
            subject = Subject(
                key=COMPARISON, id=numbers.identity(self._id, COMPARISON), group="", tags=(COMPARISON,),
                settings=numbers.experiment_settings(self.history), began_ms=self._began_ms,
            )  # fmt: skip
            self._tracker.begin(subject)
            self._tracker.conclude(subject, self._verdicts())
        self._tracker.close()

    def _subject(self, run: str) -> Subject:
        """Return the subject of a run, begun at its first mention."""
        if run not in self._subjects:
            spec = self.history.runs[run].spec
            group = spec.ref.group_id
            self._subjects[run] = Subject(
                key=run, id=numbers.identity(self._id, run), group=group,
                tags=tuple(dict.fromkeys((group, *self._tags.get(group, ())))),
                settings=numbers.run_settings(self.history, spec), began_ms=self._at_ms,
            )  # fmt: skip
            self._tracker.begin(self._subjects[run])
        return self._subjects[run]

    def _conclude(self, run: str, values: dict[str, float], words: dict[str, str]) -> None:
        """Conclude a run once: a lost run is not evaluated."""
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
        # Here, because scipy would take memory and a second of each tracker's process as long as the run lasts.
        from esper_ab.analysis.analyse import analyse
        from esper_ab.trackers.verdicts import verdict_numbers, verdict_words

        ended = self.history.ended
        assert ended is not None
        comparisons = analyse(self.history).comparisons
        return Conclusion(
            step=self.history.replicates, numbers=verdict_numbers(self.history, comparisons),
            words=verdict_words(self.history, comparisons), state=ended.status, at_ms=self._at_ms,
        )  # fmt: skip
