"""An experiment directory in Python: its records as data frames, its verdicts, its figures and its policies.

    loaded = load_experiment("experiments/demo")
    loaded.frame("episodes")
    loaded.verdicts
    loaded.plot("pairs")

Errors come from `esper_ab.contracts.errors`, with a one-line message that includes the remedy: UsageError for an
invalid request, and JournalError for a damaged experiment directory.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from esper_ab.analysis.reward_audit import RewardAuditFindings
from esper_ab.api.arguments import path_of
from esper_ab.api.lookup import ByPair, verdicts_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.own_packages import ForeignPackage, import_own
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.run_files import FILE_LIMIT_BYTES
from esper_ab.contracts.visible import visible
from esper_ab.contracts.wording import did_you_mean, listed
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.journal.fold import History
from esper_ab.journal.load import Loaded, load
from esper_ab.readers import conclusions, tables
from esper_ab.readers.joint_directory import folders_of, is_joint
from esper_ab.readers.sql import lock, relation, viewed
from esper_ab.readers.status import ExperimentState, state_of
from esper_ab.report.content import Content, content
from esper_ab.verdict.comparison import Comparison

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from matplotlib.figure import Figure

_POLICIES = "workers.run.policy_file"  # of the data plane, which the control plane imports by name only


class Policy(Protocol):
    """A saved policy with its frozen normaliser and the RunSpec of its run (workers/run/policy_file.py)."""

    @property
    def spec(self) -> RunSpec: ...

    @property
    def agent(self) -> Any:
        """The actor-critic with its normaliser; None if the controller does not learn."""

    def decider(self, *, greedy: bool) -> Any:
        """Return the controller; its `decide(view, uniforms)` returns decisions [E, head]."""


def load_experiment(path: str | Path) -> LoadedExperiment:
    """Load the current state of the experiment directory `path`, whether it is running, stopped or finished.

    Raises UsageError if there is no journal or the journal is empty, and JournalError if the journal is damaged.
    """
    experiment_dir = path_of("path", path)
    if is_joint(experiment_dir):
        parts = ", ".join(map(str, folders_of(experiment_dir)))
        raise UsageError(
            f"{experiment_dir} is a joint experiment of several parts; load one of them: {parts}; for the joint "
            "answer, call judge_outcomes with its plan.json and these folders by task"
        )
    return LoadedExperiment(experiment_dir, load(experiment_dir))


class LoadedExperiment:
    """A snapshot of an experiment directory; call `load_experiment` again for later records.

    The tables have the columns of docs/sql.md. Numbers have the units that the plan declares; times are UTC.
    """

    def __init__(self, path: Path, loaded_journal: Loaded) -> None:
        """Create the snapshot of a loaded journal."""
        self.path = path
        self.history: History = loaded_journal.history
        self.state: ExperimentState = state_of(loaded_journal.history, held=loaded_journal.held)
        self._lines = loaded_journal.lines

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.history.plan.experiment.name

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in the order of the experiment."""
        return self.history.groups

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons in the order of the design, as in verdict.json (docs/verdict.md)."""
        return self._content.comparisons

    @property
    def verdicts(self) -> dict[tuple[str, str], str]:
        """The current verdict on a - b by (a, b): "BETTER", "INCONCLUSIVE", … (docs/statistics.md)."""
        return verdicts_of(self.comparisons)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One text per comparison: its headline, its numbers, then its warnings."""
        return tuple(
            " ".join((comparison.headline, comparison.sentence, *comparison.warnings))
            for comparison in self.comparisons
        )

    @property
    def reward_audit(self) -> RewardAuditFindings | None:
        """The reward audit of the groups' rewards; None if the experiment was planned without a reward audit."""
        return self._content.analysis.reward_audit

    def comparison(self, a: str, b: str) -> Comparison:
        """Return the comparison a - b. Raises UsageError if it was not declared, or was declared only as b - a."""
        by_pair = {(comparison.question.a, comparison.question.b): comparison for comparison in self.comparisons}
        return ByPair(by_pair)[a, b]

    def frame(self, table: str) -> DuckDBPyRelation:
        """Return one of the tables in `tables.TABLES` (docs/data.md). Raises UsageError for an unknown name.

        `df()` of the result is a pandas DataFrame, `pl()` a polars DataFrame, `arrow()` an Arrow table, and
        `fetchall()` a list of tuples.
        """
        if table not in tables.TABLES:
            raise UsageError(f"no table {table!r}; {did_you_mean(table, tables.TABLES)}")
        return relation(self._database, tables.table_sql(table))

    def query(self, sql: str) -> DuckDBPyRelation:
        """Run one SELECT, which can read only the tables of `frame`. Raises UsageError if DuckDB refuses the query."""
        return relation(self._database, sql)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names that `plot` accepts."""
        from esper_ab.report.figures.catalogue import names  # needs matplotlib, which records and verdicts do not

        return names(self._content)

    def plot(self, name: str = "effects") -> Figure:
        """Return a figure of the report as a matplotlib Figure.

        pyplot does not manage the figure, so the figure need not be closed. Raises UsageError if `name` is not in
        `figures`, or if there is nothing to draw yet.
        """
        from esper_ab.report.figures.catalogue import figure  # as above

        if name not in self.figures:
            raise UsageError(f"no figure {name!r}; {did_you_mean(name, self.figures)}")
        drawing = figure(name, self._content)
        if drawing is None:
            drawn_names = [other for other in self.figures if figure(other, self._content) is not None]
            raise UsageError(
                f"no figure {name!r} for {self.path}: the experiment has no records for it; it has "
                f"{listed(drawn_names) or 'none yet'}"
            )
        return drawing

    def policy(self, group: str, replicate: int) -> Policy:
        """Load the trained policy of one run. Torch is imported, but code from the file is never executed.

        Raises UsageError if there is no such run, if the run has no policy yet, or if the file is not the policy that
        was evaluated.
        """
        if group not in self.groups:
            raise UsageError(f"no group {group!r} in '{self.path}'; {did_you_mean(group, self.groups)}")
        runs = {run.ref.replicate: run for run in self.history.of_group(group)}
        if replicate not in runs:
            raise UsageError(f"no seed {replicate!r} of {group} in '{self.path}'; its seeds are 0 to {max(runs)}")
        run = runs[replicate]
        if run.evaluation is None:
            raise UsageError(f"run {run.ref.name} in '{self.path}' has no policy: the run is {run.state}, not finished")
        path = self.path / run.evaluation.policy_file
        try:
            sha256 = hashlib.sha256(read_regular(path, FILE_LIMIT_BYTES)).hexdigest()
        except OSError as error:
            reason = f"{error.strerror}; the journal records it as the policy of {run.ref.name}"
            raise UsageError(f"{path}: {reason}") from None
        if sha256 != run.evaluation.policy_sha256:
            raise UsageError(f"{path} is not the policy that was evaluated: its sha256 differs from the journal's")
        try:
            policy: Policy = import_own(_POLICIES).load(path)
        except (ValueError, ForeignPackage) as error:
            raise UsageError(str(error)) from None
        return policy

    def __repr__(self) -> str:
        verdicts = "; ".join(f"{a} - {b}: {verdict}" for (a, b), verdict in self.verdicts.items())
        return visible(
            f"<LoadedExperiment {str(self.path)!r}, {self.state}: {self._content.title}; {self._done}; {verdicts}>"
        )

    def _repr_html_(self) -> str:
        rows = "".join(map(_html_row, self.comparisons))
        head = f"{escape(visible(self._content.title))} ({escape(visible(str(self.path)))})"
        return f"<p><b>{head}</b><br>{escape(self.state)}: {escape(self._done)}</p><table>{rows}</table>"

    @property
    def _done(self) -> str:
        finished_count = sum(run.evaluation is not None for run in self.history.runs.values())
        return f"{finished_count} of {len(self.history.runs)} runs evaluated"

    @cached_property
    def _content(self) -> Content:
        return content(self.history, held=self.state == "running")

    @cached_property
    def _database(self) -> DuckDBPyConnection:
        connection = viewed(self.path, self._lines, self.history.design.measures)
        conclusions.add_conclusions(connection, self.comparisons)
        lock(connection)
        return connection


def _html_row(comparison: Comparison) -> str:
    """Return a comparison as a row of a table in a notebook."""
    question = comparison.question
    answer = "<br>".join(escape(visible(line)) for line in comparison.answer)
    return (
        f"<tr><td>{escape(question.a)} &minus; {escape(question.b)}</td>"
        f"<td><b>{escape(str(comparison.verdict))}</b></td>"
        f'<td style="text-align:left">{answer}</td></tr>'
    )
