"""An experiment whose training is the user's own: what has to be said for it, and what does not belong to it. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.kinds import TRAINER_PREFIX
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.trainer import OUT, SEED, TrainerValue, is_command, placeholders, read_source
from esper_ab.settings.assignments import TRAINER, Assignment
from esper_ab.settings.experiment import ExperimentSettings, Group
from esper_ab.settings.outcome_range import read_range

DEFAULT_OUTCOME = "outcome"
_LABEL_CHARS = 60
# Settings of an experiment that a trainer's has, too; the others are growth's.
READ = frozenset((
    "name", "trainer", "trainer_folder", "rehearsal", "outcome", "outcome_better", "outcome_unit", "outcome_range",
    "episodes", "seeds", "rng_seed", "devices", "max_parallel", "placement", "order", "sync", "unpaired",
    "outcome_over", "alpha", "margin", "looks", "control", "untested", "early_stop", "futility", "open_ended",
    "eval_episodes", "arithmetic.threads", "arithmetic.precision", "arithmetic.deterministic", "arithmetic.conv_kernel",
))  # fmt: skip
# one point and one outcome
_OF_COMMAND = {"episodes": 1, "eval_episodes": 1, "outcome_over": "evaluation"}


def trained(values: dict[str, Any], groups: Sequence[Group], said: Sequence[Assignment]) -> dict[str, Any]:
    """Return what a trainer decides of an experiment's `values`; UsageError for what does not go together.

    `said`: every assignment that was made.
    """
    reference = values["trainer"]
    for one in said:
        if not (one.key in READ or one.key.startswith(TRAINER)):
            raise UsageError(
                f"{one.origin}: {one.key} is not read with a trainer of your own; groups differ in the trainer's "
                "settings, as in --group fast:trainer.lr=1e-2"
            )
    if len(groups) < 2:
        raise UsageError(
            "a trainer of your own needs two groups or more that differ in its settings, as in --group "
            "slow:trainer.lr=1e-4 --group fast:trainer.lr=1e-3"
        )
    unit = f", in {values['outcome_unit']}" if values.get("outcome_unit") else ""
    needed = {
        "outcome_better": "whether higher or lower is better",
        "margin": f"which difference in the outcome is worth acting on{unit}",
        **({"outcome": "where the command leaves it, as in json:result.json:return"} if is_command(reference) else {}),
    }
    missing = [key for key in needed if values.get(key) in (None, "")]
    if missing:
        raise UsageError(*[
            part for key in missing for part in ("; ", Setting(key), f" is missing: say {needed[key]}")
        ][1:])  # fmt: skip
    read_range(values.get("outcome_range", ""))
    rehearsal = read_rehearsal(values.get("rehearsal", ()))
    if not is_command(reference):
        _check_python(reference, values.get("outcome", ""))
        return {"task": f"{TRAINER_PREFIX}{_name(PurePath(reference).stem)}", "n_envs": 1, "steps": 1}
    for one in said:
        if one.key in _OF_COMMAND and one.value != _OF_COMMAND[one.key]:
            raise UsageError(f"{one.origin}: a command has one point and one outcome, at its end")
    _check_command(reference, values.get("outcome", ""), {group.name: group.settings.trainer for group in groups})
    _check_filled(reference, rehearsal, Setting("rehearsal"))
    folder = next(one for one in said if one.key == "trainer").folder.resolve()
    return {
        "task": f"{TRAINER_PREFIX}{_name(_title(reference))}", "n_envs": 1, "steps": 1, "episodes": 1,
        "eval_episodes": 1, "trainer_folder": values.get("trainer_folder") or str(folder),
    }


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
    if source.kind != "wandb" and OUT not in names:
        raise UsageError(
            Setting("trainer"), f": no {{{OUT}}} in {command!r}: every run has a folder of its own, where "
            f"{source.path} is looked for; write it where the script takes its folder, as in --out {{{OUT}}}",
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


def read_rehearsal(texts: Iterable[str]) -> dict[str, TrainerValue]:
    """Read NAME=VALUE, with or without `trainer.` before the name; UsageError for anything else."""
    found: dict[str, TrainerValue] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix(TRAINER)
        if not equals or not name.isidentifier():
            raise UsageError(Setting("rehearsal"), f": {text!r} is not NAME=VALUE, as in steps=1000")
        found[name] = value.strip()
    return found


def outcome_measure(experiment: ExperimentSettings) -> Measure:
    """Return the outcome as the plan declares it, called by its name or the last part of a command's source of it."""
    low, high = read_range(experiment.outcome_range)
    label = experiment.outcome.rpartition(":")[2] or DEFAULT_OUTCOME
    return Measure(
        name="outcome", label=label[:_LABEL_CHARS], unit=experiment.outcome_unit, low=low, high=high,
        better=experiment.outcome_better or "neither",
    )  # fmt: skip


def _title(command: str) -> str:
    """Return what a command is called: its first Python file, or its program."""
    words = shlex.split(command)
    script = next((word for word in words if word.endswith(".py")), words[0])
    return Path(script).stem


def _name(text: str) -> str:
    """Return a name that a folder can have."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-_.")[:64] or "trainer"
