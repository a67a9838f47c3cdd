"""Results of an experiment by variant: the success and the metrics of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

from esper_ab.api.loaded import LoadedExperiment, load_experiment
from esper_ab.api.lookup import NoSuchName, verdicts_of
from esper_ab.contracts.errors import EsperError
from esper_ab.contracts.run_files import folder_of
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible
from esper_ab.contracts.wording import did_you_mean
from esper_ab.journal.events import Incident
from esper_ab.journal.fold import History, RunHistory
from esper_ab.report.content import Content
from esper_ab.verdict.comparison import Comparison

_DEATHS = ("worker_death", "hung_worker")
_GO_ON = "to go on: "  # prefix of the last line of such an error, from control/experiment_run
_METRICS = ("outcome", "evaluated", "greedy", "failed", "entropy_change", "training_area")  # fields of RunOutcome


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of one run; `result["success"]` and `result.success` are equivalent."""

    variant: str
    replicate: int
    success: bool  # whether all planned records arrived, including the evaluation of its policy
    error: str  # why not, in one line; "" with success
    duration_s: float  # wall time of recorded episodes and evaluation in seconds, without warm-up and waiting
    metrics: Mapping[str, float | None]  # docs/python.md; measures by name, rewards as "reward.MODE"
    directory: Path  # with its resolved settings
    policy: Path | None  # its trained policy; None without success

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(f"{name!r}; a run has {', '.join(self.keys())}")
        return getattr(self, name)

    def keys(self) -> tuple[str, ...]:
        """Return the names that `[]` accepts."""
        return tuple(field.name for field in fields(self))


class Results(Mapping[str, list[RunResult]]):
    """A mapping from each variant to its runs by seed; runs that an early decision made unnecessary are left out."""

    def __init__(self, path: Path, content: Content, error: str) -> None:
        """Create the results from the content of the report; `error` is the reason for an early end, or ""."""
        self.path = path
        self.error = error
        self.comparisons: tuple[Comparison, ...] = content.comparisons
        self._runs = {
            name: [_result(path, run, content) for run in content.history.of_group(name) if not run.left_out]
            for name in content.groups
        }
        self._failed = {
            (run.ref.group_id, run.ref.replicate)
            for run in content.history.runs.values()
            if _has_failed(run, content.history)
        }

    @property
    def verdicts(self) -> dict[tuple[str, str], str]:
        """The verdict on a - b by (a, b): "BETTER", "INCONCLUSIVE", …"""
        return verdicts_of(self.comparisons)

    @property
    def verdict(self) -> str:
        """Headline, sentence and warnings of every comparison, one per line."""
        lines = list[str]()
        for comparison in self.comparisons:
            headline, *marked_lines = comparison.answer
            lines += [headline, comparison.sentence, *marked_lines]
        return "\n".join(lines)

    @property
    def failures(self) -> dict[str, list[RunResult]]:
        """A mapping from each variant with runs that have no result to those runs."""
        failed_runs = {name: [run for run in runs if not run.success] for name, runs in self.items()}
        return {name: runs for name, runs in failed_runs.items() if runs}

    @property
    def loaded(self) -> LoadedExperiment:
        """The experiment directory as data frames, figures and policies."""
        return load_experiment(self.path)

    def __getitem__(self, variant: str) -> list[RunResult]:
        if variant not in self._runs:
            raise NoSuchName(f"no variant {variant!r}; {did_you_mean(str(variant), self._runs)}")
        return self._runs[variant]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def failure_lines(self) -> list[str]:
        """For each variant with runs that have no result, lines with the number of those runs and the reasons."""
        lines = []
        for name, runs in self.failures.items():
            failed_count = sum((name, run.replicate) in self._failed for run in runs)
            lines.append(f"{name}: {_count_failures(failed_count, len(runs), len(self[name]))}")
            lines += [f"  {count} x {reason}" for reason, count in Counter(run.error for run in runs).items()]
        return lines

    def __str__(self) -> str:
        """Return a text with the successes by variant, the reasons for failures, and the verdicts."""
        lines = [f"{self.path}: {self.error}" if self.error else str(self.path)]
        for name, runs in self.items():
            done_count = sum(run.success for run in runs)
            lines.append(f"{name}: {done_count} of {len(runs)} runs done")
        return "\n".join([*lines, *self.failure_lines, self.verdict])

    def _repr_html_(self) -> str:
        failure_html = "".join(f"<p>{escape(visible(line))}</p>" for line in self.failure_lines)
        return f"{self.loaded._repr_html_()}{failure_html}"

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {sum(run.success for run in runs)}/{len(runs)}" for name, runs in self.items())
        return f"<Results {self.path} {counts}>"


def early_end(failure: EsperError | None, path: Path, history: History) -> str:
    """Return one line on why an experiment ended early, where to look, and how to resume; "" if `failure` is None.

    The message of `failure` has several lines; the last line is the command that resumes with the same launcher flags.
    If the message includes the end of a worker's log, that part is left out.
    """
    if failure is None:
        return ""
    lines = str(failure).splitlines()
    first_line, *later_lines = [line for line in lines if not line.startswith(_GO_ON)]
    parts = [first_line]
    if later_lines and not later_lines[-1].startswith(" "):
        parts.append(later_lines[-1])  # the consequence, below the log
    words = [str(path)]
    if dead_run := next((entry.run_name for entry in reversed(history.incidents) if entry.category in _DEATHS), ""):
        words.append(dead_run)
    parts.append(f"see `{shell_command('logs', *words)}`")
    parts += [f"{_GO_ON}`{line.removeprefix(_GO_ON)}`" for line in lines if line.startswith(_GO_ON)]
    return "; ".join(parts)


def _result(path: Path, run: RunHistory, content: Content) -> RunResult:
    evaluation = run.evaluation
    outcome = content.outcomes[run.ref.name]
    success = evaluation is not None and len(run.columns) == run.spec.episodes
    seconds = list(run.columns.of("total_s"))
    policy: Path | None = None
    if evaluation is not None:
        seconds.append(evaluation.timing.total_s)
        policy = path / evaluation.policy_file
    rewards = {f"reward.{mode}": value for mode, value in outcome.rewards.items()}
    return RunResult(
        variant=run.ref.group_id,
        replicate=run.ref.replicate,
        success=success,
        error="" if success else _why(run, content.history),
        duration_s=sum(seconds, 0.0),
        metrics={name: getattr(outcome, name) for name in _METRICS} | outcome.measures | rewards,
        directory=path / folder_of(run.ref),
        policy=policy,
    )


def _has_failed(run: RunHistory, history: History) -> bool:
    """Whether the run itself failed: it was lost by its own failure, or was not finished when failures ended all."""
    if run.failed:
        return True
    if not run.expected or history.ended is None or history.ended.status != "failed":
        return False
    return any(entry.run_name == run.ref.name and entry.category in _DEATHS for entry in history.incidents)


def _count_failures(failed_count: int, without_result: int, runs: int) -> str:
    """Say how many of a variant's runs have no result, and how many of those failed themselves."""
    if failed_count == without_result:
        return f"{failed_count} of {runs} runs failed"
    if not failed_count:
        return f"{without_result} of {runs} runs without a result, none of which failed itself"
    return f"{without_result} of {runs} runs without a result, {failed_count} of which failed"


def _why(run: RunHistory, history: History) -> str:
    """Return one line on why a run did not finish: its worker died, another run failed, or the experiment ended."""
    entries = [entry for entry in history.incidents if entry.run_name == run.ref.name]
    if run.lost:
        kinds = _DEATHS if run.failed else ("cancelled",)
        return _last(entries, kinds) or _last(entries, ("dropped_pair",)) or "its seed was given up"
    if _has_failed(run, history):
        return next(entry.detail for entry in entries if entry.category in _DEATHS)  # later ones refer to it
    progress = "not finished" if run.started else "not started"
    end_event = history.ended
    if end_event and end_event.detail:
        return f"{progress}; the experiment {end_event.status}"
    return f"{progress}; the experiment did not end"


def _last(entries: list[Incident], kinds: tuple[str, ...]) -> str:
    return next((entry.detail for entry in reversed(entries) if entry.category in kinds), "")
