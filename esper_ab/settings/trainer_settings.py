"""Settings of a user's trainer: of its rehearsal, and of its outcome. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.measures import PRINTABLE_WORDS, Measure, is_printable
from esper_ab.contracts.trainer import DEFAULT_OUTCOME, TrainerValue, names_placeholder
from esper_ab.contracts.visible import visible_line
from esper_ab.settings.experiment import ExperimentSettings
from esper_ab.settings.outcome_range import read_range
from esper_ab.settings.schema import TRAINER

_LABEL_CHARS = 60


def read_rehearsal(texts: Iterable[str]) -> dict[str, TrainerValue]:
    """Parse NAME=VALUE, with or without `trainer.` before NAME; raises UsageError for anything else."""
    settings: dict[str, TrainerValue] = {}
    for text in texts:
        name, equals_sign, value = text.partition("=")
        name = name.strip().removeprefix(TRAINER)
        if not equals_sign or not (name.isidentifier() or names_placeholder(name)):
            raise UsageError(SettingName("rehearsal"), f": {text!r} is not NAME=VALUE, as in steps=1000")
        settings[name] = value.strip()
    return settings


def check_outcome_name(experiment: ExperimentSettings) -> None:
    """Raise UsageError if the outcome's name cannot be a label in sentences and figures."""
    name = _outcome_name(experiment)
    if not is_printable(name):
        raise UsageError(
            SettingName("outcome"), f": expected a name {PRINTABLE_WORDS}, not '{visible_line(name, _LABEL_CHARS)}'"
        )


def _outcome_name(experiment: ExperimentSettings) -> str:
    return experiment.outcome.rpartition(":")[2] or DEFAULT_OUTCOME


def outcome_measure(experiment: ExperimentSettings) -> Measure:
    """Return the declaration of the outcome.

    The label is the outcome's name or, for a command, the last part of the outcome's source.
    """
    low, high = read_range(experiment.outcome_range)
    return Measure(
        name="outcome",
        label=_outcome_name(experiment)[:_LABEL_CHARS],
        unit=experiment.outcome_unit,
        low=low,
        high=high,
        better=experiment.outcome_better or "neither",
    )
