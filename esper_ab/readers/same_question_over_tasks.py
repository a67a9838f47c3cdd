"""Experiments over the same tasks that ask one question on each of them, on different rng seeds.

Each task is compared as experiments of this task alone are. If the plans are the same on all tasks, the experiments can
be pooled as one larger experiment over these tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.analysis.pooling_over_tasks import JoinedTasks
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.design.design import Contrast
from esper_ab.journal.load import load
from esper_ab.readers.agreement import Source
from esper_ab.readers.command_code import command_code
from esper_ab.readers.compared import refuse_few
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint import LoadedParts, digest_of, load_parts
from esper_ab.readers.joint_directory import PLAN_NAME, Joint, is_joint, read_joint
from esper_ab.readers.same_question import (
    DeclaredPooling,
    Relation,
    Repeatable,
    SameQuestion,
    called_by_folder,
    different_questions,
    find_missing,
    finished_runs,
    in_order,
    is_declared,
    joined,
    line_of,
    refuse_different,
)


@dataclass(frozen=True, kw_only=True)
class SameQuestionOverTasks(Relation):
    """Experiments over the same tasks that ask the same question, each with its own rng seed."""

    experiments: tuple[JoinedTasks, ...]
    loaded: tuple[LoadedParts, ...]  # by experiment
    tasks: Mapping[str, SameQuestion]  # the question on each task alone

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The comparisons that all experiments planned, as the first one names them: the mean over tasks, then tasks.

        On the mean, groups are compared if they are on every task.
        """
        by_task: list[Contrast] = []
        for task, question in self.tasks.items():
            by_task += [msgspec.structs.replace(contrast, task=task) for contrast in question.contrasts]
        first_plan = self.experiments[0].plan
        compared_groups = [{contrast.groups for contrast in question.contrasts} for question in self.tasks.values()]
        on_mean = [
            contrast
            for contrast in first_plan.design.comparisons
            if contrast.task not in self.tasks and all(contrast.groups in groups for groups in compared_groups)
        ]
        return (*on_mean, *by_task)


def read_over_tasks(folders: Sequence[Path]) -> list[LoadedParts]:
    """Load experiments over several tasks; UsageError if one is over a single task, or has a task without runs.

    Their rng seeds must differ: the seeds of one rng seed form pairs, task by task.
    """
    refuse_few(folders)
    for folder in folders:
        if not is_joint(folder):
            _refuse_single(folder, next(folder for folder in folders if is_joint(folder)))
    loaded_experiments = [load_parts(folder, read_joint(folder), read_plan(folder / PLAN_NAME)) for folder in folders]
    for item in loaded_experiments:
        for part_state in item.parts:
            if part_state.part.name not in item.histories:
                resume = shell_command("resume", item.directory)
                raise UsageError(
                    f"{item.directory}: {part_state.part.name} has not begun, so nothing is compared yet; `{resume}` "
                    "trains it, unless the experiment is running"
                )
    rng_seeds = {item.rng_seed for item in loaded_experiments}
    if len(rng_seeds) == 1:
        first_part = loaded_experiments[0].joint_experiment.parts[0]
        compare = shell_command("compare", *(item.directory / first_part.folder for item in loaded_experiments))
        raise UsageError(
            f"these experiments have one rng seed ({rng_seeds.pop()}), so their seeds form pairs, task by task: "
            f"`{compare}`, and likewise for the other tasks"
        )
    return loaded_experiments


def with_earlier_over_tasks(directory: Path, joint_experiment: Joint) -> list[LoadedParts]:
    """Return the experiments that the one in `directory` replicates, and itself.

    Return [] if one of them is not in the same parent directory. Raises UsageError as `read_over_tasks` does.
    """
    own_directory = directory.resolve()
    folders = [own_directory.parent / earlier.name for earlier in joint_experiment.earlier]
    for folder, earlier in zip(folders, joint_experiment.earlier, strict=True):
        if not is_joint(folder) or digest_of(folder) != earlier.digest:
            return []
    return read_over_tasks([*folders, own_directory])


def _refuse_single(folder: Path, over_tasks: Path) -> None:
    """Raise UsageError for an experiment that has one task, beside one that has several."""
    load(folder)  # which says so if it is no experiment at all
    parts = ", ".join(str(over_tasks / part.folder) for part in read_joint(over_tasks).parts)
    raise UsageError(f"{over_tasks} is over several tasks and {folder} is not; compare one task with it: {parts}")


def same_question_over_tasks(loaded_experiments: Sequence[LoadedParts]) -> SameQuestionOverTasks:
    """Return what the experiments have in common; UsageError, with one line per difference, if they ask other things.

    They have at least two rng seeds, and are called by the names of their folders, or by their paths if two folders
    have one name.
    """
    names = called_by_folder([str(item.directory) for item in loaded_experiments])
    by_name = dict(zip(names, loaded_experiments, strict=True))
    refuse_different(_different_tasks(by_name))
    tasks = loaded_experiments[0].plan.tasks
    refuse_different(
        f"{task}: {line}" for task in tasks for line in different_questions(_sources(by_name, names, task))
    )
    kept_names, repetitions = in_order(
        [
            Repeatable(
                name=name,
                rng_seed=item.rng_seed,
                finished_runs=sum(map(finished_runs, item.histories.values())),
                pooling=_declared_pooling(item),
            )
            for name, item in by_name.items()
        ]
    )
    questions = {task: joined(_sources(by_name, kept_names, task)) for task in tasks}
    experiments = tuple(
        JoinedTasks(
            name=name,
            plan=by_name[name].plan,
            parts={task: question.experiments[place] for task, question in questions.items()},
        )
        for place, name in enumerate(kept_names)
    )
    refuse_different(_different_names(experiments))
    poolings = [_declared_pooling(by_name[name]) for name in kept_names]
    missing_names = find_missing(poolings)
    one_plan = all(question.one_plan for question in questions.values()) and _one_rule(experiments)
    return SameQuestionOverTasks(
        experiments=experiments,
        loaded=tuple(by_name[name] for name in kept_names),
        tasks=questions,
        one_plan=one_plan,
        declared=one_plan and not missing_names and is_declared(poolings),
        missing=missing_names,
        repeated=repetitions,
        differs=tuple(_differing(questions)),
        command_code=command_code({name: tuple(by_name[name].histories.values()) for name in kept_names}),
    )


def _sources(by_name: Mapping[str, LoadedParts], names: Sequence[str], task: str) -> list[Source]:
    """Return the experiments of one task."""
    return [(name, by_name[name].histories[task]) for name in names]


def _declared_pooling(loaded_parts: LoadedParts) -> DeclaredPooling:
    return DeclaredPooling(digest=loaded_parts.digest, earlier=loaded_parts.joint_experiment.earlier)


def _different_tasks(by_name: Mapping[str, LoadedParts]) -> Iterator[str]:
    """Yield a line that names the tasks of each experiment, if some experiment lacks one."""
    tasks = {name: ", ".join(sorted(item.plan.tasks)) for name, item in by_name.items()}
    if line := line_of("tasks", tasks):
        yield line


def _different_names(experiments: Sequence[JoinedTasks]) -> Iterator[str]:
    """Yield a line for each experiment whose groups stand for other groups from task to task."""
    for item in experiments:
        names = [part.names for part in item.parts.values()]
        if any(other_names != names[0] for other_names in names):
            yield f"groups: those of {item.name} have the settings of other groups from task to task"


def _one_rule(experiments: Sequence[JoinedTasks]) -> bool:
    """True if the plans over all tasks have one rule; `plan/pooling.py` compares what they fix on each task."""
    rules = [(item.plan.replicates, msgspec.structs.replace(item.plan.design, comparisons=())) for item in experiments]
    return all(rule == rules[0] for rule in rules)


def _differing(questions: Mapping[str, SameQuestion]) -> Iterator[str]:
    """Yield the lines on other settings, code and versions, each once; those of some tasks only have their names."""
    tasks_of_line: dict[str, list[str]] = {}
    for task, question in questions.items():
        for line in question.differs:
            tasks_of_line.setdefault(line, []).append(task)
    for line, tasks in tasks_of_line.items():
        yield line if len(tasks) == len(questions) else f"{', '.join(tasks)}: {line}"
