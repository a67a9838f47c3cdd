"""Tasks whose training is the user's own, a Python file or a command: what has to be said, and what it leaves out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from esper_ab.contracts.children import Machine, Questions, TaskFacts
from esper_ab.contracts.errors import Missing, Setting, UsageError
from esper_ab.contracts.settings import CONTROLLERS, REWARDS, TRAINER_PREFIX, ControllerSettings, GroupSettings
from esper_ab.contracts.trainer import (
    OUT,
    SEED,
    TrainerQuestion,
    TrainerValue,
    called,
    is_command,
    placeholders,
    read_source,
)
from esper_ab.settings.assignments import FIELDS, TRAINER, Assignment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import SettingsKind
from esper_ab.settings.machine import asked_gpus, resolve_devices, torch_alone
from esper_ab.settings.outcome_range import DEFAULT_OUTCOME, outcome_measure, read_range, read_rehearsal

# One point and one outcome.
_OF_COMMAND = {"episodes": 1, "eval_episodes": 1, "outcome_over": "evaluation"}


class TrainerKind(SettingsKind):
    """Nothing of it is a policy of ours, so that no setting of those is read."""

    name = "trainer"
    words = "trainers of your own"
    rewards, controllers = REWARDS[name], CONTROLLERS[name]
    free_names = True

    def read(self, asked: AskedExperiment, said: Sequence[Assignment]) -> AskedExperiment:
        """Return the task, and what a trainer or a command has one of."""
        reference = asked.trainer
        for one in said:
            if not (one.key.startswith(TRAINER) or (one.key in FIELDS and self.name in FIELDS[one.key].kinds)):
                raise UsageError(
                    f"{one.origin}: {one.key} is not read with a trainer of your own; groups differ in the trainer's "
                    "settings, as in --vary lr=1e-3,1e-2"
                )
        if missing := list(_missing(asked)):
            raise Missing(missing)
        read_range(asked.outcome_range)
        rehearsal = read_rehearsal(asked.rehearsal)
        if not is_command(reference):
            _check_python(reference, asked.outcome)
            return msgspec.structs.replace(asked, task=_task(reference), n_envs=1, steps=1)
        for one in said:
            if one.key in _OF_COMMAND and one.value != _OF_COMMAND[one.key]:
                raise UsageError(f"{one.origin}: a command has one point and one outcome, at its end")
        _check_command(reference, asked.outcome, {group.name: group.settings.trainer for group in asked.groups})
        _check_filled(reference, rehearsal, Setting("rehearsal"))
        folder = next(one for one in said if one.key == "trainer").folder.resolve()
        return msgspec.structs.replace(
            asked, task=_task(reference), n_envs=1, steps=1, episodes=1, eval_episodes=1,
            trainer_folder=asked.trainer_folder or str(folder),
        )

    def ask(self, asked: AskedExperiment) -> Questions:
        """Ask what the trainer's rehearsal finds out."""
        return Questions(
            task=asked.task, data_dir="", slots=(), user_rewards=(), gpus=asked_gpus(asked), trainer=_question(asked),
            trainer_outcome=outcome_measure(asked),
        )  # fmt: skip

    def resolve(
        self, asked: AskedExperiment, machine: Machine, task: TaskFacts, eval_episodes: int
    ) -> dict[str, Any]:
        """Take the settings as the preflight has typed them."""
        facts = machine.trainer
        assert facts is not None, "it was asked about"
        groups = tuple(
            msgspec.structs.replace(group, settings=GroupSettings(
                controller=ControllerSettings(name=self.name), trainer=facts.settings[group.name],
            ))
            for group in asked.groups
        )  # fmt: skip
        return {
            "groups": groups,
            "devices": resolve_devices(asked, machine, on_cores=self.on_cores),
            "arithmetic": torch_alone(asked.arithmetic),
            "eval_episodes": facts.evaluations,
        }


def _missing(asked: AskedExperiment) -> Iterator[tuple[Setting, str, str]]:
    """List the decisions that nobody can make for the user."""
    if len(asked.groups) < 2:
        free = [name for name in placeholders(asked.trainer) if name not in (SEED, OUT)]
        key = (*free, "KEY")[0]
        flag = f"--group NAME:{TRAINER}{key}=VALUE" if asked.groups else f"--vary {key}=V1,V2"
        yield Setting("groups"), "two or more, which differ in the trainer's settings", flag
    if not asked.outcome_better or (is_command(asked.trainer) and not asked.outcome):
        where = "a name that evaluate(run, state) returns"
        if is_command(asked.trainer):
            where = f"a key of the JSON or a column of the CSV that it leaves in {{{OUT}}}"
        yield Setting("outcome_better"), f"what decides, {where}", "--higher NAME"
    if asked.margin is None:
        unit = f", in {asked.outcome_unit}" if asked.outcome_unit else ""
        yield Setting("margin"), f"the smallest difference in the outcome worth acting on{unit}", "--margin SIZE"


def _question(asked: AskedExperiment) -> TrainerQuestion:
    return TrainerQuestion(
        reference=asked.trainer, directory=asked.trainer_folder,
        outcome=asked.outcome or DEFAULT_OUTCOME,
        groups={group.name: group.settings.trainer for group in asked.groups},
        rehearsal=read_rehearsal(asked.rehearsal), points=asked.episodes,
        evaluations=0 if asked.eval_episodes == "auto" else asked.eval_episodes, rng_seed=asked.rng_seed,
        threads=asked.arithmetic.threads, deterministic=asked.arithmetic.deterministic,
        gpu=next(iter(asked_gpus(asked)), ""),
    )  # fmt: skip


def _check_python(reference: str, outcome: str) -> None:
    """UsageError for a command without placeholders, and for a command's source of the outcome."""
    if " " in PurePath(reference).name:
        raise UsageError(
            Setting("trainer"), f": {PurePath(reference).name!r} is no file, and a command needs {{{SEED}}} where the "
            f"script takes its seed, as in --seed {{{SEED}}}",
        )  # fmt: skip
    if ":" in outcome:
        raise UsageError(
            Setting("outcome", outcome), " is of a command; that of a Python trainer is the name of what "
            "evaluate(run, state) returns",
        )  # fmt: skip


def _check_command(command: str, outcome: str, groups: Mapping[str, Mapping[str, TrainerValue]]) -> None:
    """UsageError unless every placeholder gets a value, and every setting has its placeholder."""
    try:
        shlex.split(command)
    except ValueError as error:
        raise UsageError(Setting("trainer"), f": {command!r}: {str(error).lower()}") from None
    try:
        source = read_source(outcome)
    except ValueError as error:
        raise UsageError(Setting("outcome"), f": {error}") from None
    names = placeholders(command)
    if SEED not in names:
        raise UsageError(
            Setting("trainer"), f": no {{{SEED}}} in {command!r}: every seed would be the same run; write it "
            f"where the script takes its seed, as in --seed {{{SEED}}}",
        )  # fmt: skip
    if not source.wandb and OUT not in names:
        raise UsageError(
            Setting("trainer"), f": no {{{OUT}}} in {command!r}: every run has a folder of its own, where "
            f"{source.path or 'its file'} is looked for; write it where the script takes its folder, as in --out "
            f"{{{OUT}}}",
        )  # fmt: skip
    for group, settings in groups.items():
        for name in names:
            if name not in (*settings, SEED, OUT):
                unknown = [f"{TRAINER}{key}" for key in settings if key not in names]
                instead = f"; {' and '.join(unknown)} has no place in it" if unknown else ""
                raise UsageError(
                    f"group {group!r}: nothing is said for {{{name}}} of the command{instead}; give it with "
                    f"{TRAINER}{name}, as in --set {TRAINER}{name}=1"
                )
        _check_filled(command, settings, f"group {group!r}")


def _check_filled(command: str, settings: Iterable[str], what: str | Setting) -> None:
    """UsageError for a setting that would change nothing of a command."""
    names = placeholders(command)
    for name in settings:
        if name in (SEED, OUT) or name not in names:
            filled = f"every run fills {{{name}}} by itself"
            why = filled if name in (SEED, OUT) else f"the command has no {{{name}}}"
            raise UsageError(what, f": {TRAINER}{name} would change nothing: {why}")


def _task(reference: str) -> str:
    """Return what a trainer is called as a task, which a folder can be called, too."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", PurePath(called(reference)).stem).strip("-_.")[:64]
    return f"{TRAINER_PREFIX}{name or 'trainer'}"


KIND = TrainerKind()
