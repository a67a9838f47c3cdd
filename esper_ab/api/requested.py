"""Turn a declared experiment into a request, with the code that reads the command line, and into tracker settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.api.declared import ABExperiment, ABVariant
from esper_ab.api.setting_names import Overrides, dotted, plain
from esper_ab.api.spelling import ARGUMENTS, in_python, spelled
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.experiment_name import check_name
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import parse
from esper_ab.settings.request import request
from esper_ab.settings.schema import EXPERIMENT_FIELDS, SHORT
from esper_ab.settings.settings_file import NO_FILE, FileSettings
from esper_ab.trackers.settings import Tracking


@dataclass(frozen=True, kw_only=True)
class DeclaredExperiment:
    """The content of an experiment file or of a Python declaration."""

    file: FileSettings = NO_FILE  # as if read from a TOML file
    about: dict[str, Any] = field(default_factory=dict)  # the author's remarks
    tracking: Tracking = field(default_factory=Tracking)
    names: Mapping[str, str] = field(default_factory=lambda: ARGUMENTS)  # of settings in messages, as in `in_python`

    @property
    def asked(self) -> AskedExperiment:
        """The requested experiment, without flags. Messages of UsageErrors spell settings as in Python."""
        with spelled(in_python(self.names)):
            return parse(request(self.file))


def parse_experiment(experiment: ABExperiment, folder: Path | None = None) -> AskedExperiment:
    """Return the request of `experiment` after every check that does not need the machine; UsageError if a check fails.

    `folder` is the base of relative paths in settings, by default the working directory.
    """
    return parse_declaration(experiment, folder or Path.cwd()).asked


def parse_declaration(experiment: ABExperiment, folder: Path) -> DeclaredExperiment:
    """Read `experiment` without parsing its settings; UsageError if a name, a variant or a text is invalid."""
    for attribute in ("name", "description", "date", "wandb_project", "wandb_entity"):
        if not isinstance(value := getattr(experiment, attribute), str):
            raise UsageError(f"the {attribute} of an experiment must be text, not {value!r}")
    check_name(experiment.name, "experiment")
    _check_variants(experiment)
    file = FileSettings(
        common=tuple(_common(experiment, folder)),
        tables={variant.name: tuple(_own(variant, folder)) for variant in experiment.variants},
    )
    return DeclaredExperiment(file=file, about=about(experiment), tracking=tracking_of(experiment))


def _check_variants(experiment: ABExperiment) -> None:
    place = f"experiment {experiment.name!r}"
    names = []
    for variant in experiment.variants:
        if not isinstance(variant, ABVariant):
            raise UsageError(f"{place}: a variant must be an ABVariant, not {variant!r}")
        for attribute in ("name", "description", "run"):
            if not isinstance(value := getattr(variant, attribute), str):
                raise UsageError(f"{place}: the {attribute} of a variant must be text, not {value!r}")
        if variant.name in names:
            raise UsageError(f"{place}: there are two variants {variant.name!r}; rename one of them")
        if not isinstance(variant.tags, list | tuple) or not all(isinstance(tag, str) for tag in variant.tags):
            raise UsageError(f"variant {variant.name!r}: tags must be a list, as in ['a', 'b'], not {variant.tags!r}")
        names.append(variant.name)
    if not names:
        raise UsageError(f"{place} has no variant; add one, or two to compare")


def _common(experiment: ABExperiment, folder: Path) -> Iterator[Assignment]:
    place = f"experiment {experiment.name!r}"
    yield Assignment("name", experiment.name, f"{place}, name", folder, is_text=False)
    if experiment.runs_per_variant is not None:
        yield Assignment(
            "seeds",
            plain(experiment.runs_per_variant),
            f"{place}, runs per variant",
            folder,
            is_text=False,
        )
    yield from _assignments(experiment.base_config, f"{place}, base config", folder)


def _own(variant: ABVariant, folder: Path) -> Iterator[Assignment]:
    place = f"variant {variant.name!r}"
    for assignment in _assignments(variant.overrides, place, folder):
        if assignment.key in EXPERIMENT_FIELDS:
            key = assignment.key.replace(".", "__")
            raise UsageError(f"{place}: {key} cannot differ between variants; use set_base_config({key}=…) for all")
        yield assignment


def _assignments(settings: Overrides, place: str, folder: Path) -> Iterator[Assignment]:
    try:
        values = dotted(settings)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    yield from (
        Assignment(SHORT.get(key, key), value, f"{place}: {key}", folder, is_text=False)
        for key, value in values.items()
    )


def tracking_of(experiment: ABExperiment) -> Tracking:
    """Return the tracking settings with the experiment's description, its variants' tags and W&B names."""
    tracking = experiment.tracking
    if not isinstance(tracking, Tracking):
        raise UsageError(f"experiment {experiment.name!r}: tracking must be an esper_ab.trackers.settings.Tracking")
    if experiment.wandb_entity or experiment.wandb_project:
        tracking = msgspec.structs.replace(
            tracking,
            wandb="online" if tracking.wandb == "off" else tracking.wandb,
            wandb_entity=experiment.wandb_entity,
            wandb_project=experiment.wandb_project,
        )
    if experiment.date and not tracking.wandb_project:
        tracking = msgspec.structs.replace(tracking, wandb_project=f"ab_test_{experiment.name}_{experiment.date}")
    tags = {}
    for variant in experiment.variants:
        own_tags = tuple(variant.tags)
        if variant.run:
            own_tags += (variant.run,)
        if own_tags:
            tags[variant.name] = own_tags
    return msgspec.structs.replace(tracking, description=experiment.description, tags=tags)


def about(experiment: ABExperiment) -> dict[str, Any]:
    """Return the author's remarks, which affect nothing, for the [record] table of experiment.toml.

    `launch` skips it.
    """
    variants = {
        variant.name: {"description": variant.description, "tags": list(variant.tags), "run": variant.run}
        for variant in experiment.variants
    }
    return {"description": experiment.description, "date": experiment.date or str(date.today()), "variants": variants}
