"""An experiment whose training is the user's own: what has to be said for it, and what does not belong to it. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.trainer import OUT, SEED, TrainerValue, is_command, placeholders, read_source
from esper_ab.settings.assignments import TRAINER, Assignment
from esper_ab.settings.experiment import AskedExperiment, Group

DEFAULT_OUTCOME = "outcome"
_LABEL_CHARS = 60
# Settings of an experiment that a trainer's has, too; the others are growth's.
READ = frozenset((
    "name", "trainer", "trainer_folder", "rehearsal", "outcome", "outcome_better", "outcome_unit", "outcome_range",
    "episodes", "replicates", "rng_seed", "devices", "max_parallel", "placement", "order", "sync", "unpaired",
    "endpoint", "test", "alpha", "margin", "looks", "control", "untested", "early_stop", "futility", "open_ended",
    "eval_hosts", "arithmetic.threads", "arithmetic.precision", "arithmetic.deterministic", "arithmetic.conv_kernel",
))  # fmt: skip
_OF_COMMAND = {"episodes": 1, "eval_hosts": 1, "endpoint": "evaluation"}  # one point and one outcome, the endpoint


def trained(values: dict[str, Any], groups: Sequence[Group], said: Iterable[Assignment]) -> dict[str, Any]:
    """Return what a trainer decides of an experiment's `values`; UsageError for what does not go together.

    `said`: every assignment that was made.
    """
    said = list(said)
    origin = next(one for one in said if one.key == "trainer")
    reference = values["trainer"]
    for one in said:
        if not (one.key in READ or one.key.startswith(TRAINER)):
            raise UsageError(f"{one.origin}: {one.key} is of growth, and a trainer of your own does not read it; groups "
                             "differ in its settings, as in --group fast:trainer.lr=1e-2")  # fmt: skip
    if len(groups) < 2:
        raise UsageError(
            "a trainer of your own needs two groups or more that differ in its settings, as in --group "
            "slow:trainer.lr=1e-4 --group fast:trainer.lr=1e-3"
        )
    if not values.get("outcome_better"):
        raise UsageError(Setting("outcome_better"), " is missing: say whether higher or lower is better")
    read_range(values.get("outcome_range", ""))
    for text in values.get("rehearsal", ()):
        read_rehearsal([text])
    if not is_command(reference):
        if " " in PurePath(reference).name:
            raise UsageError(
                Setting("trainer"), f": {PurePath(reference).name!r} is no file, and a command needs {{{SEED}}} where the "
                f"script takes its seed, as in --seed {{{SEED}}}",
            )  # fmt: skip
        if ":" in values.get("outcome", ""):
            raise UsageError(
                Setting("outcome", values["outcome"]), " is of a command; that of a Python trainer is the name of "
                "what evaluate(run, state) returns",
            )  # fmt: skip
        return {"task": _name(PurePath(reference).stem), "n_envs": 1, "steps": 1}
    for one in said:
        if one.key in _OF_COMMAND and one.value != _OF_COMMAND[one.key]:
            raise UsageError(f"{one.origin}: a command has one point and one outcome, at its end")
    _check_command(reference, values, groups)
    return {
        "task": _name(_title(reference)), "n_envs": 1, "steps": 1, "episodes": 1, "eval_hosts": 1,
        "trainer_folder": values.get("trainer_folder") or str(origin.folder.resolve()),
    }


def _check_command(command: str, values: dict[str, Any], groups: Sequence[Group]) -> None:
    """UsageError unless every placeholder gets a value, and every setting has its placeholder."""
    try:
        shlex.split(command)
        source = read_source(values.get("outcome", ""))
    except ValueError as error:
        raise UsageError(Setting("outcome") if "expected" in str(error) else Setting("trainer"), f": {error}") from None
    names = placeholders(command)
    if SEED not in names:
        raise UsageError(
            Setting("trainer"), f": no {{{SEED}}} in {command!r}: every replicate would be the same run; write it where "
            f"the script takes its seed, as in --seed {{{SEED}}}",
        )  # fmt: skip
    if source.kind != "wandb" and OUT not in names:
        raise UsageError(
            Setting("trainer"), f": no {{{OUT}}} in {command!r}: every run has a folder of its own, where {source.path} "
            f"is looked for; write it where the script takes its folder, as in --out {{{OUT}}}",
        )  # fmt: skip
    own = [name for name in names if name not in (SEED, OUT)]
    for group in groups:
        for name in own:
            if name not in group.settings.trainer:
                raise UsageError(
                    f"group {group.name!r}: nothing is said for {{{name}}} of the command; give it with "
                    f"{TRAINER}{name}, as in --set {TRAINER}{name}=1"
                )
        for name in group.settings.trainer:
            if name not in own:
                filled = f"every run fills {{{name}}} by itself"
                why = filled if name in (SEED, OUT) else f"the command has no {{{name}}}"
                raise UsageError(f"group {group.name!r}: {TRAINER}{name} would change nothing: {why}")
    for name in read_rehearsal(values.get("rehearsal", ())):
        if name not in own:
            raise UsageError(Setting("rehearsal"), f": the command has no {{{name}}}")


def read_range(text: str) -> tuple[float | None, float | None]:
    """Read LOW..HIGH, of which either may be missing; UsageError for anything else."""
    if not text:
        return None, None
    low, dots, high = text.partition("..")
    try:
        ends = tuple(float(end) if end else None for end in (low, high))
    except ValueError:
        ends = ()
    if not dots or not ends or ends == (None, None) or (None not in ends and not ends[0] < ends[1]):  # type: ignore[operator]
        raise UsageError(Setting("outcome_range"), f": expected LOW..HIGH, as in 0..100 or 0.., not {text!r}")
    return ends[0], ends[1]


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


def worst_outcome(experiment: AskedExperiment) -> float | None:
    """Return the worse end of the outcome's range; None where it has none."""
    low, high = read_range(experiment.outcome_range)
    return high if experiment.outcome_better == "lower" else low


def outcome_measure(experiment: AskedExperiment) -> Measure:
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
