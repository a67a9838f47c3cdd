"""What the settings of a trainer of the user's own mean: its rehearsal's, and its outcome. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.trainer import TrainerValue
from esper_ab.settings.assignments import TRAINER
from esper_ab.settings.experiment import ExperimentSettings
from esper_ab.settings.outcome_range import read_range

DEFAULT_OUTCOME = "outcome"
_LABEL_CHARS = 60


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
