"""Python functions for outcomes of runs done elsewhere: explore them, or judge them by a plan made before them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import msgspec

from esper_ab.api.arguments import arguments, path_of, typed
from esper_ab.api.setting_names import plain
from esper_ab.api.spelling import in_python, spelled
from esper_ab.contracts.claim import Claim
from esper_ab.contracts.errors import Unanswered, UsageError, refused
from esper_ab.contracts.margins import check_margin
from esper_ab.contracts.settings import Variances
from esper_ab.formats.cells import cell_text
from esper_ab.readers.external_plan import make_external_plan, read_plan, save_plan
from esper_ab.readers.joint import read_experiments
from esper_ab.readers.joint_directory import is_experiment, refuse_joint
from esper_ab.readers.order_file import read_orders
from esper_ab.readers.python_data import read_data
from esper_ab.readers.read_outcomes import Outcomes, read_outcomes
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.scales import ByTask, ranges_of, scales_of, with_best
from esper_ab.readers.steps import StepRule
from esper_ab.report.external import external_json, external_report
from esper_ab.report.text import render_text
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule
from esper_ab.verdict.answer import Answer, with_profiles
from esper_ab.verdict.exploration import explore, questions_on
from esper_ab.verdict.judge import judge
from esper_ab.verdict.levels import at_level
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.row_questions import direction_questions, item_questions, refuse_for_plan
from esper_ab.verdict.scale import Scale
from esper_ab.verdict.units import check_units

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Asked = Mapping[str, Any]  # arguments of a function below, by name


@dataclass(frozen=True, kw_only=True)
class OutcomeVerdicts(Answer):
    """Verdicts on outcomes. `str()` returns the text that the command prints."""

    def __str__(self) -> str:
        return render_text(external_report(self), in_full=True)

    @property
    def verdicts(self) -> dict[tuple[str, str, str], str]:
        """The verdict by (a, b, task); the task is "" if there are no tasks, and "mean over tasks" for the mean."""
        verdicts = {}
        for comparison in self.comparisons:
            question = comparison.question
            verdicts[question.a, question.b, question.task] = str(comparison.verdict)
        return verdicts

    @property
    def figure(self) -> Figure:
        """The figure that `--figure` draws, as a matplotlib Figure."""
        from esper_ab.report.figures.external import external_figure  # needs matplotlib, which verdicts do not

        return external_figure(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the output of `--json` as Python objects."""
        return dict(msgspec.json.decode(external_json(self)))


class RuleOptions(TypedDict, total=False):
    """Options of a comparison or a plan: the properties of the outcome, and the rule by which groups are compared."""

    better: ByTask  # "higher", "lower"; one, or one per task
    unit: ByTask
    label: str
    worst: ByTask  # replaces lost runs of the group that looks better; one, or one per task
    control: str
    alpha: float


class FileOptions(TypedDict, total=False):
    """How to read files and folders, named like the flags of `esper-ab judge`."""

    runs: str  # the pattern by which paths or columns name the runs; by default, it is found in the names
    at: float | None  # the step at which the outcomes are taken; by default, each run's last
    mean_last: int | None  # over how many of a run's last values the mean is taken


class OutcomeOptions(RuleOptions, FileOptions, total=False):
    """Options of `compare_outcomes`, named like the flags of `esper-ab judge` without a plan."""

    scores: ByTask  # "WORST..TARGET": outcomes that score 0 and 1, for profiles; one, or one per task
    rows: Literal["runs", "items"] | None  # what a row is, if no column tells: a training run, or an item of one
    level: Literal["checkpoints", "trainings"] | None  # what an answer from items is about; by default, the data tell
    closed_items: bool  # the answer is about these very items, as in a closed benchmark
    paired: bool | None  # whether runs with the same seed form a pair; by default, if groups share seeds


class DesignOptions(RuleOptions, total=False):
    """Options of `design_comparison`, named like the flags of `esper-ab design`."""

    tasks: Sequence[str]
    cells: Sequence[str]  # settings to choose from: each group is judged at its own best
    choose: int  # extra seeds, run first, on which the cells are chosen
    looks: Sequence[int]
    early_stop: bool
    futility: float
    claim: Claim
    variances: Variances
    shape: Literal["same", "any"]  # any: claims must hold whatever the shapes of the groups' distributions
    best: ByTask  # the best possible outcome, for shape="any"; one, or one per task


def compare_outcomes(
    data: Any,
    *,
    margin: ByTask,
    columns: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
    **options: Unpack[OutcomeOptions],
) -> OutcomeVerdicts:
    """Compare the groups of `data`. The result is exploratory, because nothing was declared before the runs.

    `data` is one of these:

    - a file or a folder, or a list of them, as for `esper-ab judge`. `runs` is the pattern by which paths or columns
      name groups and seeds, as in "{group}-s{seed}"; without it, it is found. `at` or `mean_last` says at which step,
      or over how many of the last values, the outcome of a run is taken; by default, it is the last value.
    - a data frame, or a mapping from column names to values, with one row per run. The columns are group, outcome, and
      seed or pair (for unpaired data: run). The columns task and cluster are optional.
    - the same with one row per seed and one column per group; `groups` names these columns.
    - a mapping from groups to outcomes. Outcomes with the same key (of a mapping, or of the index of a pandas Series)
      form a pair; without keys, outcomes at the same position do.

    `margin` is the smallest difference worth acting on, as one number or one per task. Raises UsageError, with a
    one-line message, if the data or an option is invalid.
    """
    options_by_name = arguments("compare_outcomes", options, OutcomeOptions) | {"margin": margin}
    with _python_errors():
        outcomes = _outcomes(data, columns, groups, options_by_name)
        if outcomes.better:
            options_by_name = {"better": outcomes.better} | options_by_name
        return explored(outcomes.observations, options_by_name)


def explored(observations: Observations, options_by_name: Asked) -> OutcomeVerdicts:
    """Compare all groups; `options_by_name` holds the arguments of `compare_outcomes` by name."""
    scales = _scales(observations.tasks, options_by_name)
    observations = at_level(
        observations, options_by_name.get("level"), closed=bool(options_by_name.get("closed_items"))
    )
    rule = _rule(options_by_name)
    scores = options_by_name.get("scores", "")
    check_units(scales, observations, ranges_of(observations.tasks, scores))
    paired = options_by_name.get("paired")
    rows = options_by_name.get("rows")
    questions = (
        *item_questions(observations, rows),
        *direction_questions(observations.outcome_column, options_by_name),
        *questions_on(observations, scales, rule, paired=paired, rows=rows),
    )
    if questions:
        raise Unanswered(observations.source, questions)
    answer = explore(observations, scales, rule, paired=paired, rows=rows)
    return with_scores(answer, scores)


def design_comparison(
    groups: Sequence[str],
    seeds: int | Sequence[int | str],
    *,
    margin: ByTask,
    output_path: str | Path | None = None,
    **options: Unpack[DesignOptions],
) -> AnalysisPlan:
    """Make a plan for runs done elsewhere; UsageError if the plan is invalid.

    `seeds` is the number of seeds beside the `choose` extra ones, and all are then named 0, 1, …, or a list of the
    names of all. The first `choose` seeds are used only to choose the cells. The plan is written to `output_path` if
    that is given; an existing file is never replaced.
    """
    options_by_name = arguments("design_comparison", options, DesignOptions) | {"margin": margin}
    with _python_errors():
        plan = designed(
            typed("groups", groups, tuple[str, ...]), _seeds(seeds, options_by_name.get("choose", 0)), options_by_name
        )
        if output_path is not None:
            save_plan(plan, path_of("output_path", output_path))
    return plan


def designed(groups: Sequence[str], seeds: Sequence[str], options_by_name: Asked) -> AnalysisPlan:
    """Make a plan; `options_by_name` holds the arguments of `design_comparison` by name."""
    if questions := tuple(direction_questions("", options_by_name)):
        raise Unanswered("the plan", questions)
    scales = _scales(options_by_name.get("tasks") or ("",), options_by_name)
    for scale in scales:
        check_margin(scale.outcome, scale.margin, scale.task)
    return make_external_plan(
        groups,
        seeds,
        scales,
        _rule(options_by_name),
        cells=tuple(options_by_name.get("cells", ())),
        choosing=options_by_name.get("choose", 0),
    )


def judge_outcomes(
    plan: AnalysisPlan | str | Path,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
    scores: ByTask = "",
    **options: Unpack[FileOptions],
) -> OutcomeVerdicts:
    """Judge `data` by a plan or a plan file, in the order of the plan, and note deviations from the plan.

    `data`, `columns`, `groups` and the options are as for `compare_outcomes`; or `data` is an experiment directory, or
    a mapping from tasks to experiment directories.
    `scores` gives the outcomes that score 0 and 1 in performance profiles, as one text "WORST..TARGET" or one per task.
    """
    options_by_name = arguments("judge_outcomes", options, FileOptions)
    with _python_errors():
        if isinstance(plan, AnalysisPlan):
            external_plan = plan
        else:
            external_plan = read_plan(path_of("plan", plan, "a plan or "))
        folders = _folders(data)
        if folders and (columns or groups):
            raise UsageError("columns and groups apply to a table; experiment directories have no columns")
        for _, folder in folders:
            refuse_joint(folder, "judge_outcomes", by_task=True)
        if external_plan.evaluation is not None:
            observations = read_orders(external_plan, _paths(data))
        elif folders:
            observations = read_experiments(folders, external_plan.scales)
        else:
            try:
                observations = _outcomes(data, columns, groups, options_by_name).observations
            except Unanswered as error:
                refuse_for_plan(error)
        return judged(external_plan, observations, scores)


def judged(plan: AnalysisPlan, observations: Observations, scores: ByTask) -> OutcomeVerdicts:
    """Judge observations by a plan of training runs; items below the runs widen its intervals."""
    if plan.cells and observations.table is not None:
        raise UsageError(
            f"{observations.source}: a plan that chooses cells compares the means of runs; give each run one row"
        )
    observations = at_level(observations, "trainings")
    if observations.facts is None:
        check_units(plan.scales, observations, ranges_of([scale.task for scale in plan.scales], scores))
    return with_scores(judge(plan, observations), scores)


def with_scores(answer: Answer, scores: ByTask) -> OutcomeVerdicts:
    """Return `answer` with the performance profiles that `scores` requests."""
    ranges = ranges_of([scale.task for scale in answer.scales], scores)
    return OutcomeVerdicts(**vars(with_profiles(answer, ranges)))


@contextmanager
def _python_errors() -> Iterator[None]:
    """Convert errors inside this context: spell settings as in Python, and turn an OSError into a UsageError."""
    try:
        with spelled(in_python({"paired": "paired=True", "unpaired": "paired=False"})):
            yield
    except OSError as error:
        raise refused(error, f"{error.filename}: {error.strerror}") from None


def _folders(data: Any) -> list[tuple[str, Path]]:
    """Return the task and path of each experiment directory given as `data`; [] if `data` has other outcomes."""
    if isinstance(data, (str, os.PathLike)):
        return [("", Path(data))] if is_experiment(Path(data)) else []
    if not isinstance(data, Mapping) or not all(isinstance(path, (str, os.PathLike)) for path in data.values()):
        return []
    return [(task, Path(path)) for task, path in data.items()]


def _outcomes(data: Any, columns: Mapping[str, str] | None, groups: Sequence[str], options_by_name: Asked) -> Outcomes:
    """Read outcomes from files and folders, or from data in memory."""
    if not isinstance(columns, Mapping | None):
        raise UsageError(
            f"columns must map names of esper_ab to names in the data, as in {{'group': 'algorithm'}}, not {columns!r}"
        )
    group_names = typed("groups", groups, tuple[str, ...])
    runs = options_by_name.get("runs", "")
    steps = StepRule(options_by_name.get("at"), options_by_name.get("mean_last"))
    paths = _paths(data)
    if not paths:
        if runs or steps.given:
            raise UsageError("runs, at and mean_last apply to files and folders")
        return Outcomes(read_data(data, columns, group_names, options_by_name.get("rows")))
    rules = ReadingRules(
        names=columns or {},
        groups=group_names,
        runs=runs,
        rows=options_by_name.get("rows"),
        control=options_by_name.get("control") or "",
        steps=steps,
    )
    outcomes = read_outcomes(paths, rules)
    observations = outcomes.observations
    reading = (*(f"{line}." for line in outcomes.name_lines), *observations.reading)
    return replace(outcomes, observations=msgspec.structs.replace(observations, reading=reading))


def _paths(data: Any) -> list[Path]:
    """Return the files and folders given as `data`; [] if it is something else."""
    if isinstance(data, (str, os.PathLike)):
        return [Path(data)]
    if isinstance(data, list | tuple) and all(isinstance(path, (str, os.PathLike)) for path in data):
        return [Path(path) for path in data]
    return []


def _scales(tasks: Sequence[str], options_by_name: Asked) -> tuple[Scale, ...]:
    options = {
        key: options_by_name[key] for key in ("margin", "better", "unit", "label", "worst") if key in options_by_name
    }
    scales = scales_of(tasks, **options)
    best = options_by_name.get("best", "")
    return scales if best == "" else with_best(scales, best)


def _rule(options_by_name: Asked) -> Rule:
    options = {key: value for key, value in options_by_name.items() if key in Rule.__struct_fields__}
    return Rule(**options | {"looks": tuple(options_by_name.get("looks", ()))})


def _seeds(seeds: Any, choose: int) -> tuple[str, ...]:
    """Return the names of the seeds as they appear in a table of outcomes; `choose` is added to a number."""
    if isinstance(plain(seeds), int):
        return tuple(map(str, range(choose + seeds)))
    return tuple(map(cell_text, typed("seeds", seeds, tuple[Any, ...])))
