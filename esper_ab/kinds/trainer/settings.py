"""The kind of task that is trained by a user's own Python file or command: which settings it needs or does not read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from esper_ab.contracts.code_state import CODE_FOLDER, read_code, written_code
from esper_ab.contracts.errors import Missing, SettingName, UsageError
from esper_ab.contracts.machine import Machine, Questions, TaskFacts
from esper_ab.contracts.margins import check_margin
from esper_ab.contracts.outcome_summary import read_summary
from esper_ab.contracts.settings import ControllerSettings, GroupSettings
from esper_ab.contracts.trainer import (
    DEFAULT_OUTCOME,
    FILLED,
    NAME_WORDS,
    SEED,
    TRAINER_PREFIX,
    TrainerQuestion,
    TrainerValue,
    called,
    is_command,
    is_function,
    is_guarded,
    misnamed,
    placeholders,
    read_source,
)
from esper_ab.contracts.wording import listed
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.devices import asked_gpus, resolve_devices
from esper_ab.settings.experiment import AskedExperiment, ResolvedExperiment
from esper_ab.settings.kernel import torch_alone
from esper_ab.settings.kind import SettingsKind
from esper_ab.settings.resolution import Resolution
from esper_ab.settings.schema import FIELDS, TRAINER, or_of_trainer
from esper_ab.settings.trainer_settings import check_outcome_name, outcome_measure, read_rehearsal

_ONLY_OF_COMMANDS = ("end_idle", "outcome_summary")
# A command has one point and one outcome; a function has one outcome, and as many points as its curve.
_OF_COMMAND = {"episodes": 1, "eval_episodes": 1}
_OF_FUNCTION = {"eval_episodes": 1}
_MOST_POINTS = 100  # of a function's curve, unless --episodes says otherwise


class TrainerKind(SettingsKind):
    """The user's trainer, which does not read the settings of policies that esper_ab trains."""

    name = "trainer"
    words = "trainers of your own"
    rewards = ()
    controllers = (name,)
    trains_policies = False
    free_names = True

    def read(self, asked_experiment: AskedExperiment, assignments: Sequence[Assignment]) -> AskedExperiment:
        """Return the experiment with the task's name, and with 1 for every number that is fixed by the trainer."""
        reference = asked_experiment.trainer
        for assignment in assignments:
            self._check_is_read(assignment, asked_experiment.task)
            if not is_command(reference) and assignment.key.startswith(TRAINER):
                _check_name(assignment)
        if missing_settings := list(_missing(asked_experiment)):
            raise Missing(missing_settings)
        check_outcome_name(asked_experiment)
        if asked_experiment.margin is not None:
            check_margin(
                outcome_measure(asked_experiment), asked_experiment.margin
            )  # before the rehearsal, which may take long
        rehearsal = read_rehearsal(asked_experiment.rehearsal)
        if not is_command(reference):
            _refuse_settings_of_commands(asked_experiment)
        folder = next(assignment.folder for assignment in assignments if assignment.key == "trainer").resolve()
        if asked_experiment.code:
            asked_experiment = _read_code(asked_experiment, str(folder))
        if not is_guarded(reference):
            _check_python(reference, asked_experiment.outcome)
            return msgspec.structs.replace(asked_experiment, task=_task(reference), n_envs=1, steps=1)
        if is_command(reference):
            _check_words(reference)
        single_rollout = msgspec.structs.replace(
            asked_experiment,
            task=_task(reference),
            n_envs=1,
            steps=1,
            eval_episodes=1,
            trainer_folder=asked_experiment.trainer_folder or str(folder),
        )
        if is_function(reference):
            return _read_function(single_rollout, assignments)
        _check_command_budget(assignments)
        _check_outcome(asked_experiment.outcome, asked_experiment.outcome_summary)
        _check_command(reference, {group.name: group.settings.trainer for group in asked_experiment.groups})
        _check_filled(reference, rehearsal, SettingName("rehearsal"))
        return msgspec.structs.replace(single_rollout, episodes=1)

    def ask(self, asked_experiment: AskedExperiment) -> Questions:
        """Ask the preflight to rehearse the trainer."""
        return Questions(
            task=asked_experiment.task,
            data_dir="",
            slots=(),
            user_rewards=(),
            gpus=asked_gpus(asked_experiment),
            trainer=_question(asked_experiment),
            trainer_outcome=outcome_measure(asked_experiment),
        )

    def resolve(
        self, asked_experiment: AskedExperiment, machine: Machine, task: TaskFacts, eval_episodes: int
    ) -> Resolution:
        """Return the settings with the types that the preflight found."""
        facts = machine.trainer
        assert facts is not None, "it was asked about"
        if is_function(asked_experiment.trainer):
            _check_window(asked_experiment, facts.points)
        groups = []
        for group in asked_experiment.groups:
            settings = GroupSettings(controller=ControllerSettings(name=self.name), trainer=facts.settings[group.name])
            groups.append(msgspec.structs.replace(group, settings=settings))
        return Resolution(
            groups=tuple(groups),
            slots=asked_experiment.slots,
            devices=resolve_devices(asked_experiment, machine, on_cores=self.on_cores),
            arithmetic=torch_alone(asked_experiment.arithmetic),
            eval_episodes=facts.evaluations,
            episodes=facts.points or None,
            code=written_code({group: state.sealed for group, state in facts.code_states.items()}),
            code_kept=CODE_FOLDER if any(state.kept for state in facts.code_states.values()) else "",
        )

    def remarks(
        self, asked_experiment: AskedExperiment, resolved_experiment: ResolvedExperiment, machine: Machine
    ) -> tuple[str, ...]:
        """Return no notes, because the kernel computes nothing here."""
        return ()


def _read_code(asked_experiment: AskedExperiment, folder: str) -> AskedExperiment:
    """Return the experiment with the folder from which its states are seen; UsageError unless each group has one."""
    from esper_ab.settings.code_groups import check_code_groups  # most experiments have one state of the code

    check_code_groups(read_code(asked_experiment.code), [group.name for group in asked_experiment.groups])
    return msgspec.structs.replace(asked_experiment, trainer_folder=asked_experiment.trainer_folder or folder)


def _missing(asked_experiment: AskedExperiment) -> Iterator[tuple[SettingName, str, str]]:
    """For each missing decision that only the user can make, yield the setting, an explanation and the flag."""
    if not asked_experiment.groups:
        key = next((name for name in placeholders(asked_experiment.trainer) if name not in FILLED), "KEY")
        flag = f"--vary {key}=V1,V2"
        yield SettingName("groups"), "at least two groups, which differ in a setting of the trainer", flag
    place_words = "the name of a number in the result of evaluate(run, state)"
    if is_command(asked_experiment.trainer):
        place_words = "a key, a column or a tag of a file that the command writes, or a name in its output"
    is_declared = asked_experiment.outcome_better and (
        asked_experiment.outcome or not is_command(asked_experiment.trainer)
    )
    if not is_declared and not is_function(asked_experiment.trainer):
        yield SettingName("outcome_better"), f"the outcome that decides, {place_words}", "--higher NAME"
    if asked_experiment.margin is None:
        unit = f", in {outcome_measure(asked_experiment).apart}" if asked_experiment.outcome_unit else ""
        yield SettingName("margin"), f"the smallest difference in the outcome worth acting on{unit}", "--margin SIZE"


def _question(asked_experiment: AskedExperiment) -> TrainerQuestion:
    assert asked_experiment.margin is not None  # `read` refuses an experiment without one
    return TrainerQuestion(
        reference=asked_experiment.trainer,
        directory=asked_experiment.trainer_folder,
        outcome=asked_experiment.outcome or DEFAULT_OUTCOME,
        groups={group.name: group.settings.trainer for group in asked_experiment.groups},
        rehearsal=read_rehearsal(asked_experiment.rehearsal),
        points=asked_experiment.episodes,
        evaluations=0 if asked_experiment.eval_episodes == "auto" else asked_experiment.eval_episodes,
        margin=asked_experiment.margin,
        rng_seed=asked_experiment.rng_seed,
        threads=asked_experiment.arithmetic.threads,
        deterministic=asked_experiment.arithmetic.deterministic,
        ends_idle=asked_experiment.end_idle,
        outcome_summary=asked_experiment.outcome_summary,
        gpus=asked_gpus(asked_experiment),
        devices_per_run=asked_experiment.devices_per_run,
    )


def _refuse_settings_of_commands(experiment: AskedExperiment) -> None:
    for name in _ONLY_OF_COMMANDS:
        if getattr(experiment, name) != FIELDS[name].default:
            raise UsageError(SettingName(name), " is only for a command")


def _check_command_budget(assignments: Sequence[Assignment]) -> None:
    """Raise UsageError for numbers of points or outcomes that a command cannot have."""
    for assignment in assignments:
        key = assignment.key
        if key == "outcome_over" and assignment.value != "evaluation":
            raise UsageError(
                f"{assignment.origin}: a command has no window of training; ",
                SettingName("outcome_summary", "mean-last-10"),
                f" averages the last ten numbers of its curve; {or_of_trainer(key)}",
            )
        if key in _OF_COMMAND and assignment.value != _OF_COMMAND[key]:
            raise UsageError(
                f"{assignment.origin}: a command reports one outcome, at one point, when it ends; {or_of_trainer(key)}"
            )


def _read_function(experiment: AskedExperiment, assignments: Sequence[Assignment]) -> AskedExperiment:
    """Return the experiment with what a function fixes; UsageError for settings that it does not have."""
    for assignment in assignments:
        key = assignment.key
        if key in _OF_FUNCTION and assignment.value != _OF_FUNCTION[key]:
            raise UsageError(f"{assignment.origin}: a function returns one outcome, which is the result of its run")
    if ":" in experiment.outcome:
        raise UsageError(
            SettingName("outcome", experiment.outcome),
            " is only for a command; for a function, give a name in the dict that it returns",
        )
    points = _MOST_POINTS
    if any(assignment.key == "episodes" for assignment in assignments):
        points = experiment.episodes
    return msgspec.structs.replace(experiment, episodes=points, outcome_better=experiment.outcome_better or "higher")


def _check_window(experiment: AskedExperiment, points: int) -> None:
    """Raise UsageError if the outcome is a mean over the end of a curve that has only one point."""
    if experiment.outcome_over != "evaluation" and points == 1:
        raise UsageError(
            SettingName("outcome_over", experiment.outcome_over),
            f": {called(experiment.trainer)} returns one number, not a curve; return a list of numbers, or use ",
            SettingName("outcome_over", "evaluation"),
        )


def _check_python(reference: str, outcome: str) -> None:
    """Raise UsageError for a command without placeholders, or for an outcome that only a command can have."""
    if " " in PurePath(reference).name:
        raise UsageError(
            SettingName("trainer"),
            f": no file {PurePath(reference).name!r}; if this is a command, put "
            f"{{{SEED}}} where the script expects its seed, as in --seed {{{SEED}}}",
        )
    if ":" in outcome:
        raise UsageError(
            SettingName("outcome", outcome),
            " is only for a command; for a Python trainer, give a name in the result of evaluate(run, state)",
        )


def _check_name(setting: Assignment) -> None:
    """Raise UsageError for a setting of a Python trainer whose name no field of a class can have."""
    if not setting.key.removeprefix(TRAINER).isidentifier():
        raise UsageError(
            f"{setting.origin}: {setting.key!r} is not a trainer's setting; write {TRAINER}NAME, as in trainer.lr"
        )


def _check_outcome(outcome: str, summary: str) -> None:
    """Raise UsageError unless the outcome names a source, and the summary is one."""
    try:
        read_source(outcome)
    except ValueError as error:
        raise UsageError(SettingName("outcome"), f": {error}") from None
    try:
        read_summary(summary)
    except ValueError as error:
        raise UsageError(SettingName("outcome_summary"), f": {error}") from None


def _check_command(command: str, groups: Mapping[str, Mapping[str, TrainerValue]]) -> None:
    """Raise UsageError unless every placeholder has a value and every setting has a placeholder."""
    names = placeholders(command)
    if SEED not in names:
        raise UsageError(
            SettingName("trainer"),
            f": no {{{SEED}}} in {command!r}, so all seeds would repeat the same run; put it "
            f"where the script expects its seed, as in --seed {{{SEED}}}",
        )
    for group, settings in groups.items():
        for name in names:
            if name not in (*settings, *FILLED):
                _refuse_mistyped(group, settings, names)
                raise UsageError(
                    f"group {group!r}: {{{name}}} in the command has no value; set one, as in ",
                    SettingName(f"{TRAINER}{name}", 1, assigned=True),
                    f" (esper_ab itself fills in {listed([f'{{{placeholder}}}' for placeholder in FILLED])})",
                )
        _check_filled(command, settings, f"group {group!r}")


def _refuse_mistyped(group: str, settings: Iterable[str], names: Sequence[str]) -> None:
    """Raise UsageError for a setting without a placeholder, if a placeholder has no value: one of them is mistyped."""
    free_names = [name for name in names if name not in (*settings, *FILLED)]
    verb = "has" if len(free_names) == 1 else "have"
    braced_names = listed([f"{{{name}}}" for name in free_names])
    for key in settings:
        if key not in names:
            raise UsageError(
                f"group {group!r}: the command has no {{{key}}}, and {braced_names} {verb} no value; "
                f"did you mean {' or '.join(free_names)}?"
            )


def _check_words(command: str) -> None:
    """Raise UsageError for a command that cannot be split into words, or that only a shell would understand."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(SettingName("trainer"), f": {command!r}: {str(error).lower()}") from None
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*=", words[0]):
        raise UsageError(
            SettingName("trainer"),
            f": the command is not run by a shell, so it cannot start with {words[0]}; write "
            f"env {words[0]} {' '.join(words[1:2])} …",
        )
    for name in misnamed(command):
        raise UsageError(
            SettingName("trainer"),
            f": {{{name}}} is not a placeholder, because the name of a placeholder consists of "
            f"{NAME_WORDS}; rename it in the command and in the flags",
        )


def _check_filled(command: str, settings: Iterable[str], setting_name: str | SettingName) -> None:
    """Raise UsageError for a setting that would not change the command."""
    names = placeholders(command)
    for name in settings:
        no_effect = f": {TRAINER}{name} would have no effect"
        if name in FILLED:
            raise UsageError(setting_name, f"{no_effect}: esper_ab fills in {{{name}}} for every run; rename yours")
        if name not in names:
            raise UsageError(setting_name, f"{no_effect}: the command has no {{{name}}}")


def _task(reference: str) -> str:
    """Return a trainer's task name, which is also valid as a folder name."""
    stem = PurePath(called(reference)).stem
    if is_function(reference):
        stem = called(reference).rpartition(":")[0].removesuffix(".py").rpartition(".")[2]
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-_.")[:64]
    return f"{TRAINER_PREFIX}{name or 'trainer'}"


KIND = TrainerKind()
