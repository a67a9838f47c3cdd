"""The journals of all parts -> the answer over them: judged by the one plan, beside what the parts' audits found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esper_ab.analysis.analyse import facts_of
from esper_ab.analysis.observe import rows_of
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.events import begun
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import holder
from esper_ab.readers.joint.directory import Joint, JointPart
from esper_ab.readers.status import state_of
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.answer import Answer, with_profiles
from esper_ab.verdict.judge import judge
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.vocabulary import Finding, Scale

# --- parts -----------------------------------------------------------------------------------------------------------
# Histories of several experiment directories, one per task -> the observations that one plan judges.


def observe_parts(source: str, histories: Mapping[str, tuple[Path, History]], scales: Sequence[Scale]) -> Observations:
    """Return what was seen in `histories`, by task, with what their audits found; a replicate is called by its number.

    UsageError where an experiment measures in the other direction than the plan.
    """
    for scale in scales:
        folder, history = histories.get(scale.task, (Path(), None))
        if history is not None and scale.outcome.sign != history.outcome.sign:
            raise UsageError(
                f"{folder}: of {history.outcome.label} {history.outcome.better} is better, and in the plan "
                f"{scale.outcome.better}"
            )
    return Observations(
        source=source, pair_column="replicate",
        rows=tuple(row for task, (_, history) in histories.items() for row in rows_of(history, task)),
        facts={task: facts_of(history) for task, (_, history) in histories.items()},
    )  # fmt: skip


def read_experiments(named: Sequence[tuple[str, Path]], scales: Sequence[Scale]) -> Observations:
    """Read (task, experiment directory) each. UsageError where a task of the plan has no directory or two."""
    tasks = [task for task, _ in named]
    for scale in scales:
        if tasks.count(scale.task) != 1:
            what = f"task {scale.task} as TASK=EXPERIMENT, once" if scale.task else "one experiment directory"
            there = ", ".join(f"{task}={folder}" if task else str(folder) for task, folder in named)
            raise UsageError(f"the plan needs {what}, or all runs in one CSV file; there is {there}")
    source = ", ".join(str(folder) for _, folder in named)
    return observe_parts(source, {task: (folder, load(folder).history) for task, folder in named}, scales)


@dataclass(frozen=True, kw_only=True)
class PartNow:
    """How far one part is."""

    part: JointPart
    state: str  # as `esper-ab status` says it; "planned" before its first run
    runs: int  # of the plan, with an outcome
    of_runs: int


@dataclass(frozen=True, kw_only=True)
class JointResult:
    """Everything that is concluded over all parts."""

    name: str
    parts: tuple[PartNow, ...]
    judged: Answer
    findings: tuple[tuple[str, Finding], ...]  # (part, finding), of every part's audit

    @property
    def complete(self) -> bool:
        """Whether every part has ended with all its runs."""
        return all(now.state == "finished" and now.runs == now.of_runs for now in self.parts)


def judge_directory(directory: Path, joint: Joint, plan: AnalysisPlan, rng_seed: int | None = None) -> JointResult:
    """Judge what the parts below `directory` have recorded; a part without a journal has no runs yet.

    `rng_seed`: of the bootstraps; None: from the plan's digest.
    """
    histories, states = dict[str, tuple[Path, History]](), list[PartNow]()
    planned = len(plan.groups) * len(plan.replicates)
    for part in joint.parts:
        folder = directory / part.folder
        if not begun(folder):
            states.append(PartNow(part=part, state="planned", runs=0, of_runs=planned))
            continue
        held = holder(folder) is not None  # before reading, so that an end in between is seen
        history = load(folder).history
        histories[part.name] = folder, history
        runs = [run for run in history.runs.values() if str(run.ref.replicate) in plan.replicates]
        done = sum(run.evaluation is not None for run in runs)
        states.append(PartNow(part=part, state=state_of(history, held=held), runs=done, of_runs=planned))
    observations = observe_parts(str(directory), histories, plan.scales)
    judged = with_profiles(judge(plan, observations, rng_seed=rng_seed), joint.scores)
    facts = observations.facts or {}
    return JointResult(
        name=directory.name, parts=tuple(states), judged=judged,
        findings=tuple((name, finding) for name, one in facts.items() for finding in one.findings),
    )
