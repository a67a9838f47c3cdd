"""Histories of several experiment directories, one per task -> the observations that one plan judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esper_ab.analysis.analyse import facts_of
from esper_ab.analysis.observe import progress_of, rows_of
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.begun import begun
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, Joint, JointPart, read_joint
from esper_ab.readers.status import state_of
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.answer import Answer, with_profiles
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.judge import judge
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import Scale


def observe_parts(source: str, histories: Mapping[str, tuple[Path, History]], scales: Sequence[Scale]) -> Observations:
    """Return the runs in `histories` (by task) with the findings of their audits; replicates are named by number.

    Raises UsageError if an experiment and the plan differ on which direction of the outcome is better.
    """
    for scale in scales:
        if scale.task in histories:
            _check_direction(*histories[scale.task], scale)
    rows: list[Observation] = []
    for task, (_, history) in histories.items():
        rows += rows_of(history, task)
    return Observations(
        source=source,
        pair_column="replicate",
        rows=Runs.of(rows),
        facts={task: facts_of(history, progress_of(history)) for task, (_, history) in histories.items()},
    )


def _check_direction(folder: Path, history: History, scale: Scale) -> None:
    """Raise UsageError unless the plan and the experiment agree on which direction of the outcome is better."""
    if scale.outcome.sign != history.outcome.sign:
        raise UsageError(
            f"{folder}: {history.outcome.better} {history.outcome.label} is better here, but the plan says "
            f"{scale.outcome.better}"
        )


def read_experiments(named_folders: Sequence[tuple[str, Path]], scales: Sequence[Scale]) -> Observations:
    """Read each (task, experiment directory) in `named_folders`.

    Raises UsageError unless every task of the plan has exactly one directory.
    """
    tasks = [task for task, _ in named_folders]
    for scale in scales:
        if tasks.count(scale.task) != 1:
            needed_words = "one experiment directory"
            if scale.task:
                needed_words += f" for task {scale.task!r}, as TASK=EXPERIMENT"
            given_words = ", ".join(f"{task}={folder}" if task else str(folder) for task, folder in named_folders)
            raise UsageError(f"the plan needs {needed_words}, or all runs in one CSV file; given: {given_words}")
    histories = {task: (folder, load(folder).history) for task, folder in named_folders}
    return observe_parts(", ".join(str(folder) for _, folder in named_folders), histories, scales)


@dataclass(frozen=True, kw_only=True)
class PartNow:
    """Progress of one part."""

    part: JointPart
    state: str  # as `esper-ab status` says it; "planned" before its first run
    runs: int  # number of planned runs that have an outcome
    of_runs: int


@dataclass(frozen=True, kw_only=True)
class LoadedParts:
    """A joint experiment and the journals of its parts."""

    directory: Path
    joint_experiment: Joint
    plan: AnalysisPlan  # of all parts together
    parts: tuple[PartNow, ...]
    histories: Mapping[str, History]  # by part, as far as they have begun

    @property
    def digest(self) -> str:
        """The digest of the plan of all parts."""
        return self.joint_experiment.digest(self.plan.digest)

    @property
    def rng_seed(self) -> int:
        """The rng seed, which all parts have in common; one of them has begun."""
        return next(iter(self.histories.values())).plan.experiment.rng_seed

    @property
    def ended(self) -> bool:
        """True if every part has ended, whether or not runs were lost."""
        return all(part_state.state == "finished" for part_state in self.parts)

    @property
    def complete(self) -> bool:
        """True if every part has ended and all of its runs are complete."""
        return self.ended and all(part_state.runs == part_state.of_runs for part_state in self.parts)


@dataclass(frozen=True, kw_only=True)
class JointResult:
    """The answer over all parts of a joint experiment."""

    loaded_parts: LoadedParts
    judged: Answer
    findings: tuple[tuple[str, Finding], ...]  # (part, finding), of every part's audit

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.loaded_parts.directory.name

    @property
    def digest(self) -> str:
        """The digest of the plan of all parts."""
        return self.loaded_parts.digest

    @property
    def parts(self) -> tuple[PartNow, ...]:
        """The progress of every part."""
        return self.loaded_parts.parts

    @property
    def complete(self) -> bool:
        """True if every part has ended and all of its runs are complete."""
        return self.loaded_parts.complete


def digest_of(directory: Path) -> str:
    """Return the digest of the plan of a joint experiment. Raises UsageError and JournalError for damaged files."""
    return read_joint(directory).digest(read_plan(directory / PLAN_NAME).digest)


def load_parts(directory: Path, joint_experiment: Joint, plan: AnalysisPlan) -> LoadedParts:
    """Load the journals of the parts below `directory`; a part without a journal has no runs yet."""
    histories = dict[str, History]()
    parts = list[PartNow]()
    planned_runs = len(plan.groups) * len(plan.replicates)
    for part in joint_experiment.parts:
        folder = directory / part.folder
        state = "planned"
        done_runs = 0
        if begun(folder):
            loaded_journal = load(folder)
            histories[part.name] = loaded_journal.history
            state = state_of(loaded_journal.history, held=loaded_journal.held)
            runs = [run for run in loaded_journal.history.runs.values() if str(run.ref.replicate) in plan.replicates]
            done_runs = sum(run.evaluation is not None for run in runs)
        parts.append(PartNow(part=part, state=state, runs=done_runs, of_runs=planned_runs))
    return LoadedParts(
        directory=directory, joint_experiment=joint_experiment, plan=plan, parts=tuple(parts), histories=histories
    )


def judge_parts(loaded_parts: LoadedParts, rng_seed: int | None = None) -> JointResult:
    """Judge the recorded runs of all parts.

    `rng_seed`: the seed of the bootstraps; if None, the seed is derived from the plan's digest.
    """
    folders = {part.name: loaded_parts.directory / part.folder for part in loaded_parts.joint_experiment.parts}
    histories = {task: (folders[task], history) for task, history in loaded_parts.histories.items()}
    plan = loaded_parts.plan
    observations = observe_parts(str(loaded_parts.directory), histories, plan.scales)
    joint_answer = with_profiles(judge(plan, observations, rng_seed=rng_seed), loaded_parts.joint_experiment.scores)
    findings: list[tuple[str, Finding]] = []
    for name, facts in (observations.facts or {}).items():
        findings += [(name, finding) for finding in facts.findings]
    return JointResult(loaded_parts=loaded_parts, judged=joint_answer, findings=tuple(findings))


def judge_directory(
    directory: Path, joint_experiment: Joint, plan: AnalysisPlan, rng_seed: int | None = None
) -> JointResult:
    """Load and judge the parts below `directory`, as `load_parts` and `judge_parts` do."""
    return judge_parts(load_parts(directory, joint_experiment, plan), rng_seed)
