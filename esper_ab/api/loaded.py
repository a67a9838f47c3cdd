"""An experiment directory in Python: its records as data frames, its verdicts, its figures, its policies.

    loaded = load_experiment("experiments/demo")
    loaded.frame("episodes")
    loaded.verdicts
    loaded.plot("pairs")

Errors are those of `esper_ab.contracts.errors`, each one line with the remedy: UsageError for what cannot be had,
JournalError for a damaged experiment directory.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from esper_ab.analysis.reward_audit import RewardAuditFindings
from esper_ab.api.lookup import ByPair, verdicts_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.experiment_files import FILE_LIMIT_BYTES
from esper_ab.contracts.files import read_regular
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.own_packages import ForeignPackage, import_own
from esper_ab.contracts.wording import did_you_mean, visible
from esper_ab.journal.fold import History
from esper_ab.journal.load import Loaded, load
from esper_ab.journal.lock import holder
from esper_ab.readers import records
from esper_ab.readers.joint_directory import folders_of, is_joint
from esper_ab.readers.records import lock, viewed
from esper_ab.readers.status import ExperimentState, state_of
from esper_ab.report.content import Content, content
from esper_ab.verdict.comparison import Comparison

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from duckdb import DuckDBPyConnection
    from matplotlib.figure import Figure

_POLICIES = "workers.run.policy_file"  # of the data plane, which the control plane names by string only


class Policy(Protocol):
    """A saved policy, frozen with its normaliser, and the orders it was trained under (workers/run/policy_file.py)."""

    @property
    def spec(self) -> RunSpec: ...

    @property
    def agent(self) -> Any:
        """The actor-critic with its normaliser; None for a controller that does not learn."""

    def decider(self, *, greedy: bool) -> Any:
        """Return the controller; its `decide(view, uniforms)` returns decisions [E, head]."""


def load_experiment(path: str | Path) -> LoadedExperiment:
    """Load the experiment directory `path` as it is now: running, stopped or finished.

    UsageError when there is no journal or nothing in it yet; JournalError when it is damaged.
    """
    experiment_dir = Path(path)
    if is_joint(experiment_dir):
        parts = ", ".join(map(str, folders_of(experiment_dir)))
        raise UsageError(
            f"{experiment_dir} holds several experiments with one answer; load one of them: {parts}; judge_outcomes "
            "with its plan.json and these folders by task has the answer"
        )
    held = holder(experiment_dir) is not None  # before reading: what ends in between is then seen as finished
    return LoadedExperiment(experiment_dir, load(experiment_dir), held=held)


class LoadedExperiment:
    """Snapshot of an experiment directory; what is recorded later needs another `load_experiment`.

    The frames have the columns of docs/sql.md. `as_`: "pandas", "polars", "pyarrow" or "duckdb"; None: the first of
    them, in this order, that is installed. Numbers have the units that the plan declares, times are UTC.
    """

    def __init__(self, path: Path, loaded: Loaded, *, held: bool) -> None:
        """Take a loaded journal; `held`: whether a process is at work on it."""
        self.path = path
        self.history: History = loaded.history
        self.state: ExperimentState = state_of(loaded.history, held=held)
        self._lines = loaded.lines

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
        """(a, b) -> the verdict on a - b: "BETTER", "INCONCLUSIVE", ... (docs/statistics.md), as far as decided."""
        return verdicts_of(self.comparisons)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One text per comparison: its headline, then its numbers."""
        return tuple(f"{one.headline} {one.sentence}" for one in self.comparisons)

    @property
    def reward_audit(self) -> RewardAuditFindings | None:
        """What the rewards of the groups pay for; None where the experiment was planned without a reward audit."""
        return self._content.analysis.reward_audit

    def comparison(self, a: str, b: str) -> Comparison:
        """Return the comparison a - b; UsageError when it was not declared, or only as b - a."""
        return ByPair({(one.question.a, one.question.b): one for one in self.comparisons})[a, b]

    @overload
    def frame(self, table: str, as_: Literal["pandas"]) -> pandas.DataFrame: ...

    @overload
    def frame(self, table: str, as_: Literal["polars"]) -> polars.DataFrame: ...

    @overload
    def frame(self, table: str, as_: Literal["pyarrow"]) -> pyarrow.Table: ...

    @overload
    def frame(self, table: str, as_: str | None = None) -> Any: ...

    def frame(self, table: str, as_: str | None = None) -> Any:
        """Return a table, one of `records.TABLES` (docs/data.md), as a data frame. UsageError for an unknown name."""
        records.kind_of(as_)  # before anything is read
        if table not in records.TABLES:
            raise UsageError(f"no table {table!r}; {did_you_mean(table, records.TABLES)}")
        return records.frame(records.relation(self._database, records.table_sql(table)), as_)

    @overload
    def query(self, sql: str, as_: Literal["pandas"]) -> pandas.DataFrame: ...

    @overload
    def query(self, sql: str, as_: Literal["polars"]) -> polars.DataFrame: ...

    @overload
    def query(self, sql: str, as_: Literal["pyarrow"]) -> pyarrow.Table: ...

    @overload
    def query(self, sql: str, as_: str | None = None) -> Any: ...

    def query(self, sql: str, as_: str | None = None) -> Any:
        """Query the tables above in SQL; nothing else can be read. UsageError for what DuckDB refuses."""
        return records.frame(records.relation(self._database, sql), as_)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names that `plot` knows."""
        from esper_ab.report.figures.catalogue import names  # with matplotlib, which records and verdicts do without

        return names(self._content)

    def plot(self, name: str = "effects") -> Figure:
        """A figure of the report: a matplotlib Figure that no pyplot knows of, so that nothing needs to be closed.

        UsageError for a name that is none of `figures`, and when there is nothing to draw yet.
        """
        from esper_ab.report.figures.catalogue import figure  # likewise

        if name not in self.figures:
            raise UsageError(f"no figure {name!r}; {did_you_mean(name, self.figures)}")
        drawn = figure(name, self._content)
        if drawn is None:
            raise UsageError(f"no figure {name!r} of {self.path}: the records hold nothing to draw in it")
        return drawn

    def policy(self, group: str, replicate: int) -> Policy:
        """The trained policy of one run; loads torch, and never executes what is in the file.

        UsageError when there is no such run, it has no policy yet, or the file is not the one that was evaluated.
        """
        if group not in self.groups:
            raise UsageError(f"no group {group!r} in {self.path}; {did_you_mean(group, self.groups)}")
        runs = {run.ref.replicate: run for run in self.history.of_group(group)}
        if replicate not in runs:
            raise UsageError(f"no seed {replicate!r} of {group} in {self.path}; there is 0 to {max(runs)}")
        run = runs[replicate]
        path = self.path / run.spec.policy_file
        if run.evaluation is None:
            raise UsageError(f"{run.ref.name} has no policy in {self.path}: it is {run.state}, not finished")
        try:
            found = hashlib.sha256(read_regular(path, FILE_LIMIT_BYTES)).hexdigest()
        except OSError as error:
            why = f"{error.strerror}; the journal names it as the policy of {run.ref.name}"
            raise UsageError(f"{path}: {why}") from None
        if found != run.evaluation.policy_sha256:
            raise UsageError(f"{path} is not the policy that was evaluated: its sha256 is not the journal's")
        try:
            policy: Policy = import_own(_POLICIES).load(path)
        except (ValueError, ForeignPackage) as error:
            raise UsageError(str(error)) from None
        return policy

    def __repr__(self) -> str:
        said = "; ".join(f"{a} - {b}: {verdict}" for (a, b), verdict in self.verdicts.items())
        return visible(
            f"<LoadedExperiment {str(self.path)!r}, {self.state}: {self._content.title}; {self._done}; {said}>"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(one.question.a)} &minus; {escape(one.question.b)}</td>"
            f"<td><b>{escape(str(one.verdict))}</b></td>"
            f'<td style="text-align:left">{escape(visible(one.headline))}</td></tr>'
            for one in self.comparisons
        )
        head = f"{escape(visible(self._content.title))} ({escape(visible(str(self.path)))})"
        return f"<p><b>{head}</b><br>{escape(self.state)}: {escape(self._done)}</p><table>{rows}</table>"

    @property
    def _done(self) -> str:
        finished = sum(run.evaluation is not None for run in self.history.runs.values())
        return f"{finished} of {len(self.history.runs)} runs evaluated"

    @cached_property
    def _content(self) -> Content:
        return content(self.history, held=self.state == "running")

    @cached_property
    def _database(self) -> DuckDBPyConnection:
        connection = viewed(self.path, self._lines, self.history.design.measures.names)
        records.add_conclusions(connection, self.comparisons)
        lock(connection)
        return connection
