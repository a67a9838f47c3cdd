"""A declared experiment -> what was asked, by the code that reads the command line, and what trackers are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.api.arguments import change_tracking
from esper_ab.api.declared import ABExperiment, ABVariant
from esper_ab.api.setting_names import Settings, dotted, plain
from esper_ab.api.spelling import in_python, spelled
from esper_ab.contracts.errors import UsageError
from esper_ab.plan.experiment_directory import check_name
from esper_ab.settings.assignments import EXPERIMENT_FIELDS, SHORT, Assignment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import parse
from esper_ab.settings.request import NO_FILE, FileSettings, request
from esper_ab.trackers.settings import Tracking


@dataclass(frozen=True, kw_only=True)
class DeclaredExperiment:
    """What a file or a program declares."""

    file: FileSettings = NO_FILE  # as a TOML file has it
    about: dict[str, Any] = field(default_factory=dict)  # what its author says of it
    tracking: Tracking = field(default_factory=Tracking)

    @property
    def asked(self) -> AskedExperiment:
        """What it asks for by itself; UsageError with the remedy, which names settings as Python does."""
        with spelled(in_python()):
            return parse(request(self.file))


def parse_experiment(experiment: ABExperiment, folder: Path | None = None) -> AskedExperiment:
    """Read what `experiment` asks for, checked as far as it can be without the machine; UsageError with the remedy.

    `folder`: where relative paths in settings begin; the working directory by default.
    """
    return parse_declaration(experiment, folder or Path.cwd()).asked


def parse_declaration(experiment: ABExperiment, folder: Path) -> DeclaredExperiment:
    """Read everything that `experiment` says; UsageError as `parse_experiment`, but for its settings."""
    for what in ("name", "description", "date", "wandb_project", "wandb_entity"):
        if not isinstance(value := getattr(experiment, what), str):
            raise UsageError(f"the {what} of an experiment is text, not {value!r}")
    check_name(experiment.name, "experiment")
    _check_variants(experiment)
    file = FileSettings(
        common=tuple(_common(experiment, folder)),
        tables={variant.name: tuple(_own(variant, folder)) for variant in experiment.variants},
    )
    return DeclaredExperiment(file=file, about=about(experiment), tracking=tracking_of(experiment))


def _check_variants(experiment: ABExperiment) -> None:
    where, names = f"experiment {experiment.name!r}", []
    for variant in experiment.variants:
        if not isinstance(variant, ABVariant):
            raise UsageError(f"{where}: a variant is an ABVariant, not {variant!r}")
        for what, value in (("name", variant.name), ("description", variant.description), ("run", variant.run)):
            if not isinstance(value, str):
                raise UsageError(f"{where}: the {what} of a variant is text, not {value!r}")
        if variant.name in names:
            raise UsageError(f"{where}: variant {variant.name!r} is there twice; give one of them another name")
        if not isinstance(variant.tags, list | tuple) or not all(isinstance(tag, str) for tag in variant.tags):
            raise UsageError(f"variant {variant.name!r}: tags are a list, as in ['a', 'b'], not {variant.tags!r}")
        names.append(variant.name)
    if len(names) < 2:
        there = f"one variant ({names[0]})" if names else "no variant"
        raise UsageError(f"{where} has {there}, and nothing to compare it with; add at least two")


def _common(experiment: ABExperiment, folder: Path) -> Iterator[Assignment]:
    where = f"experiment {experiment.name!r}"
    yield Assignment("name", experiment.name, f"{where}, name", folder, is_text=False)
    if experiment.runs_per_variant is not None:
        origin = f"{where}, runs per variant"
        yield Assignment("seeds", plain(experiment.runs_per_variant), origin, folder, is_text=False)
    yield from _assignments(experiment.base_config, f"{where}, base config", folder)


def _own(variant: ABVariant, folder: Path) -> Iterator[Assignment]:
    where = f"variant {variant.name!r}"
    for assignment in _assignments(variant.overrides, where, folder):
        if assignment.key in EXPERIMENT_FIELDS:
            key = assignment.key.replace(".", "__")
            raise UsageError(f"{where}: {key} cannot differ between variants; use set_base_config({key}=…) for all")
        yield assignment


def _assignments(settings: Settings, where: str, folder: Path) -> Iterator[Assignment]:
    try:
        values = dotted(settings)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    for key, value in values.items():
        yield Assignment(SHORT.get(key, key), value, f"{where}: {key}", folder, is_text=False)


def tracking_of(experiment: ABExperiment) -> Tracking:
    """Return the tracking settings with the experiment's description, its variants' tags and W&B names."""
    told = experiment.tracking
    if not isinstance(told, Tracking):
        raise UsageError(f"experiment {experiment.name!r}: tracking is an esper_ab.trackers.settings.Tracking")
    changes: dict[str, Any] = {}
    if experiment.wandb_entity or experiment.wandb_project:
        changes = {"wandb": "online"} if told.wandb == "off" else {}
        changes |= {"wandb_entity": experiment.wandb_entity, "wandb_project": experiment.wandb_project}
    told = change_tracking(told, changes)
    if experiment.date and not told.wandb_project:
        told = msgspec.structs.replace(told, wandb_project=f"ab_test_{experiment.name}_{experiment.date}")
    tags = {variant.name: (*variant.tags, *([variant.run] if variant.run else [])) for variant in experiment.variants}
    tagged = {name: own for name, own in tags.items() if own}
    return msgspec.structs.replace(told, description=experiment.description, tags=tagged)


def about(experiment: ABExperiment) -> dict[str, Any]:
    """Return the remarks for [record] in experiment.toml; nothing depends on them, and `launch` skips them."""
    variants = {
        variant.name: {"description": variant.description, "tags": list(variant.tags), "run": variant.run}
        for variant in experiment.variants
    }
    return {"description": experiment.description, "date": experiment.date or str(date.today()), "variants": variants}
