"""Split a joint experiment, over several tasks or over a grid of settings, into parts, each of which is an experiment.

A part is one task in one cell of the grid. All parts have the same groups and seeds, and alpha is divided among them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.assignments import Assignment, read_assignment, split_commas
from esper_ab.settings.experiment import AskedExperiment, refuse_too_many
from esper_ab.settings.flags import of_flags
from esper_ab.settings.parse import parse
from esper_ab.settings.request import Request
from esper_ab.settings.schema import FIELDS, SHORT, or_of_trainer
from esper_ab.settings.values import typed

_LONGEST_FOLDER = 50  # stays below the 64 characters of a name when a hash is added
Cell = tuple[str, ...]  # "ppo.lr=1e-4", "ppo.epochs=2"


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a question: the request as if it were the only part."""

    name: str  # "digits"; in a grid "ppo.lr=1e-4", or "digits, ppo.lr=1e-4"; "": the only part
    asked: AskedExperiment

    @property
    def folder(self) -> str:
        """Name of the part's experiment directory, below that of all parts."""
        return folder_of(self.name)


def folder_of(name: str) -> str:
    """Return a part's folder name: the part's name or, if that name is invalid, a sanitised name with a hash."""
    plain_name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:_LONGEST_FOLDER] or "part"
    if plain_name == name:
        return plain_name
    return f"{plain_name}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def parse_parts(request: Request) -> tuple[Part, ...]:
    """Return the parts of a request: one for each task and cell of the grid. Raises UsageError as `parse` does."""
    tasks = _tasks(request)
    cells = grid(request.grid, request.grid_origin, has_trainer=bool(request.value_of("trainer")))
    if len(tasks) < 2 and not cells:
        _refuse_joint_settings(tasks, request)
        return (Part(name="", asked=parse(request)),)
    named_cells = [(task, cell) for task in tasks or ("",) for cell in cells or ((),)]
    names = [", ".join((*([task] if len(tasks) > 1 else ()), *cell)) for task, cell in named_cells]
    margins = _margins(request, tasks)
    texts = dict.fromkeys(text for cell in cells for text in cell)
    varied_layers = {
        text: request.check_assignments([read_assignment(text, f"{request.grid_origin} {text}")]) for text in texts
    }
    parts = []
    for name, (task, cell) in zip(names, named_cells, strict=True):
        try:
            asked_experiment = parse(
                _request_part(
                    request, task, [assignment for text in cell for assignment in varied_layers[text].values()], margins
                )
            )
        except UsageError as error:
            raise UsageError(f"{name}: ", *error.args) from None
        _refuse_single_part_settings(asked_experiment)
        if len(asked_experiment.groups) < 2:
            only_group = asked_experiment.groups[0].name
            raise UsageError(
                SettingName("groups", only_group), ": a verdict over several tasks or cells needs another group"
            )
        refuse_too_many(len(asked_experiment.groups), asked_experiment.seeds, len(named_cells))
        parts.append(Part(name=name, asked=asked_experiment))
    return tuple(parts)


def as_part(asked_experiment: AskedExperiment, parts: int) -> AskedExperiment:
    """Return the request of one of `parts` parts: with its share of alpha, a single look at the end, and no name."""
    share = share_of(
        asked_experiment.alpha, parts, len(asked_experiment.groups), controlled=bool(asked_experiment.control)
    )
    return msgspec.structs.replace(asked_experiment, name="", alpha=share, looks=(asked_experiment.seeds,))


def share_of(alpha: float, parts: int, groups: int, *, controlled: bool) -> float:
    """Return the alpha of a part: so low that every claim in the part's report is also a claim of the joint answer.

    When a comparison is decided, its share of alpha passes to the undecided comparisons. In the joint answer, these are
    the comparisons of all parts; in a part's report, only those of the same part. So a part's report tests its last
    undecided comparison at the part's whole alpha. In the joint answer, the same comparison is tested at this alpha or
    a higher one.
    """
    comparisons = groups * (groups - 1) // 2
    if controlled:
        comparisons = groups - 1
    return alpha / (comparisons * parts + 1)


def grid(texts: Iterable[str], origin: str = "--grid", *, has_trainer: bool = False) -> tuple[Cell, ...]:
    """Return all combinations of the values in KEY=V1,V2 texts, which were written at `origin`; () if there are none.

    Raises UsageError for a repeated key or value.
    """
    axes: dict[str, list[str]] = {}
    for text in texts:
        key, equals_sign, values = text.partition("=")
        pieces = split_commas(values, f"{origin} {text}")
        if not (equals_sign and key.strip()) or not all(pieces) or len(set(pieces)) < len(pieces) or len(pieces) < 2:
            raise UsageError(f"{origin} {text}: give at least two different values, as in ppo.lr=1e-4,1e-3")
        key = SHORT.get(key.strip(), key.strip())
        hint = f"; {or_of_trainer(key)}" if has_trainer else ""
        if key == "margin" or (key in FIELDS and FIELDS[key].spec.same):
            raise UsageError(f"{origin} {text}: {key} must be the same in every cell{hint}")
        if key in axes:
            raise UsageError(f"{origin} {text}: {key} is varied twice")
        axes[key] = pieces
    if not axes:
        return ()
    return tuple(
        tuple(f"{key}={value}" for key, value in zip(axes, cell, strict=True))
        for cell in itertools.product(*axes.values())
    )


def _tasks(request: Request) -> tuple[str, ...]:
    """Return the tasks named on the command line or, if none are named there, in the file; () if neither names any."""
    task_assignment = request.common.get("task")
    if task_assignment is not None and "," in task_assignment.value:
        if task_assignment.origin.startswith("--"):
            remedy = f"--task {task_assignment.value}"
        else:
            remedy = f"task = {json.dumps(task_assignment.value.split(','))}"
        raise UsageError(f"{task_assignment.origin}: to name several tasks, write {remedy}")
    if request.tasks:
        tasks = request.tasks
    elif task_assignment is not None:
        tasks = (task_assignment.value,)
    else:
        tasks = tuple(request.by_task)
    for task in request.by_task:
        if task not in tasks:
            raise UsageError(f"[tasks.{task}]: the experiment has no such task; {did_you_mean(task, tasks)}")
    return tasks


def _margins(request: Request, tasks: Sequence[str]) -> dict[str, float]:
    """Return the margin of each task named in --margin; a margin for all tasks has the key ""."""
    text = request.margins
    if not text:
        return {}
    pieces = [[part.strip() for part in piece.rpartition("=")] for piece in text.split(",")]
    named_tasks = [task for task, _, _ in pieces]
    if any(task not in tasks for task in filter(None, named_tasks)) or (len(named_tasks) > 1 and not all(named_tasks)):
        raise UsageError(f"--margin {text}: give one size for all tasks, or TASK=SIZE,… for {', '.join(tasks)}")
    if repeated_tasks := [task for task in named_tasks if named_tasks.count(task) > 1]:
        raise UsageError(f"--margin {text}: {repeated_tasks[0]} is named twice")
    try:
        return {task: float(size) for task, _, size in pieces}
    except ValueError:
        raise UsageError(f"--margin {text}: a size must be a number, as in --margin {tasks[0] or 'digits'}=2") from None


def _request_part(request: Request, task: str, cell: Iterable[Assignment], margins: Mapping[str, float]) -> Request:
    """Return the request with the settings of one part."""
    flags: dict[str, object] = {}
    if (margin := margins.get(task, margins.get(""))) is not None:
        flags["margin"] = margin
    own_assignments = request.by_task.get(task, {})
    for key, assignment in own_assignments.items():
        if FIELDS[key].spec.same:
            raise UsageError(f"{assignment.origin}: {key} must be the same for all tasks; set it outside this table")
    named_task = []
    if task:
        origin = f"task {task}"
        named_task.append(typed(Assignment("task", task, origin, request.task_folder, is_text=True)))
    strong_assignments = dict(request.strong)
    for assignment in (*named_task, *of_flags(flags), *cell):
        strong_assignments[assignment.key] = assignment
    return replace(
        request, weak={**request.weak, **own_assignments}, strong=strong_assignments, tasks=(), by_task={}, margins=""
    )


def _refuse_joint_settings(tasks: Sequence[str], request: Request) -> None:
    if request.by_task:
        raise UsageError(f"[tasks.{tasks[0]}] is only for several tasks, but there is one; set its keys at the top")
    if request.margins:
        raise UsageError(f"--margin {request.margins}: for a single task, give only the size")
    if request.scores:
        raise UsageError("--scores describes several tasks together; name them, as in --task digits,mixture")


def _refuse_single_part_settings(asked_experiment: AskedExperiment) -> None:
    for key, field in FIELDS.items():
        if field.spec.alone and getattr(asked_experiment, key) != field.default:
            refused_setting = SettingName("seeds", "auto") if key == "open_ended" else SettingName(field.flag)
            raise UsageError(refused_setting, f": {field.spec.alone}")
