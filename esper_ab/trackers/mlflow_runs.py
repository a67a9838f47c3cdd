"""MLflow tracker: one experiment per esper experiment, one run per esper run, and one for the comparison.

MLflow assigns its own run ids, so ours is a tag, by which a run is found again. The store itself holds the progress:
its contents are read, and only what is missing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunStatus, RunTag

from esper_ab.trackers.subject import COMPARISON, Conclusion, Subject, TrackedExperiment

ID_TAG = "esper_ab.id"
_METRICS_AT_ONCE = 1000  # limits of one request, by MLflow's REST interface
_PARAMS_AT_ONCE = 100
_PARAM_CHARS = 500  # accepted by every MLflow from 2.16 on; longer values are cut
_TAG_CHARS = 5000
_STATES = {"finished": RunStatus.FINISHED, "failed": RunStatus.FAILED, "interrupted": RunStatus.KILLED}


@dataclass(kw_only=True)
class _Run:
    """One run of the store."""

    id: str
    held: set[tuple[str, int, float]]  # (metric, step, value) already in the store
    waiting: list[Metric] = field(default_factory=list)  # to be sent at the end of the batch
    over: bool = False


class MLflowRuns:
    """Tracker for MLflow, as defined in subject.py."""

    def __init__(self, experiment: TrackedExperiment, uri: str) -> None:
        parts = urlsplit(uri)  # keep passwords out of logs
        self.where = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else uri
        self._client = MlflowClient(tracking_uri=uri)
        self._experiment_id = self._experiment(experiment)
        self._runs: dict[str, _Run] = {}

    def begin(self, subject: Subject) -> None:
        self._runs[subject.key] = run = self._found(subject) or self._made(subject)
        params = [Param(name, str(value)[:_PARAM_CHARS]) for name, value in subject.settings.items()]
        for start in range(0, len(params), _PARAMS_AT_ONCE):
            self._client.log_batch(run.id, params=params[start : start + _PARAMS_AT_ONCE])

    def log(self, subject: Subject, step: int, numbers: dict[str, float], at_ms: int) -> None:
        run = self._runs[subject.key]
        new = {name: value for name, value in numbers.items() if (name, step, value) not in run.held}
        run.waiting += [Metric(name, value, at_ms, step) for name, value in new.items()]

    def conclude(self, subject: Subject, conclusion: Conclusion) -> None:
        self.log(subject, conclusion.step, conclusion.numbers, conclusion.at_ms)
        run = self._runs[subject.key]
        self._send(run)
        words = [RunTag(f"esper_ab.{name}", text[:_TAG_CHARS]) for name, text in conclusion.words.items()]
        self._client.log_batch(run.id, tags=words)
        self._client.set_terminated(run.id, RunStatus.to_string(_STATES[conclusion.state]), conclusion.at_ms)
        run.over, run.held = True, set()

    def flush(self) -> None:
        for run in self._runs.values():
            self._send(run)

    def close(self) -> None:
        """Flush and mark unfinished runs as killed; a later follower sets them to running again."""
        self.flush()
        for run in self._runs.values():
            if not run.over:
                self._client.set_terminated(run.id, RunStatus.to_string(RunStatus.KILLED))

    def _experiment(self, experiment: TrackedExperiment) -> str:
        found = self._client.get_experiment_by_name(experiment.name)
        made: str = found.experiment_id if found else self._client.create_experiment(experiment.name)
        if experiment.description:
            self._client.set_experiment_tag(made, "mlflow.note.content", experiment.description)
        return made

    def _found(self, subject: Subject) -> _Run | None:
        runs = self._client.search_runs([self._experiment_id], f"tags.`{ID_TAG}` = '{subject.id}'", max_results=1)
        if not runs:
            return None
        id_ = runs[0].info.run_id
        self._client.update_run(id_, RunStatus.to_string(RunStatus.RUNNING))
        held = {
            (name, metric.step, metric.value)
            for name in runs[0].data.metrics
            for metric in self._client.get_metric_history(id_, name)
        }
        return _Run(id=id_, held=held)

    def _made(self, subject: Subject) -> _Run:
        tags = {ID_TAG: subject.id, "esper_ab.group": subject.group or COMPARISON}
        tags |= {f"esper_ab.tag.{tag}": "yes" for tag in subject.tags}
        created: Any = self._client.create_run(self._experiment_id, subject.began_ms, tags, run_name=subject.key)
        return _Run(id=created.info.run_id, held=set())

    def _send(self, run: _Run) -> None:
        while run.waiting:
            part, run.waiting = run.waiting[:_METRICS_AT_ONCE], run.waiting[_METRICS_AT_ONCE:]
            self._client.log_batch(run.id, metrics=part)
