"""Experiments declared as Python classes and expressions, and their conversion to requests."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import msgspec

from esper_ab.api.arguments import change_tracking
from esper_ab.api.setting_names import Settings, dotted, in_python, plain, spelled
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.experiment_files import check_name
from esper_ab.settings.assignments import EXPERIMENT_FIELDS, SHORT, Assignment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import parse
from esper_ab.settings.request import NO_FILE, FileSettings, request
from esper_ab.trackers.settings import Tracking

# --- declared --------------------------------------------------------------------------------------------------------
# Experiments as Python classes. This part knows no setting and checks no value.
#
# A variant is a group, and runs per variant are seeds; `parse_experiment` reads them.


_MISTYPED, _LONG = 0.85, 8  # similarity and length above which an unknown attribute is treated as a typo


@dataclass
class ABVariant:
    """One group of an experiment, with its own name and settings.

    `overrides` are, by key, the settings in which this group differs from the defaults. `tags` are for trackers, and
    `run` is an additional tag.
    """

    name: str
    description: str = ""
    overrides: Settings = field(default_factory=dict)
    tags: Sequence[str] = field(default_factory=list)
    run: str = ""


@dataclass
class ABExperiment:
    """An experiment. `esper_ab.run_ab_test` uses its state at the time of the call. Subclasses may add variants.

    If `runs_per_variant` is None, the default of `--seeds` applies. `base_config` holds settings of the experiment and
    of all variants. `date` is part of the name of the W&B project; "" means today.
    """

    name: str
    description: str = ""
    variants: Sequence[ABVariant] = field(default_factory=list)
    runs_per_variant: int | None = None
    base_config: Settings = field(default_factory=dict)
    date: str = ""
    wandb_project: str = ""
    wandb_entity: str = ""
    tracking: Tracking = field(default_factory=Tracking)

    def add_variant(self, variant: ABVariant) -> None:
        """Append a variant."""
        self.variants = [*self.variants, variant]

    def __setattr__(self, name: str, value: object) -> None:
        known = [field.name for field in fields(ABExperiment)]
        meant = get_close_matches(name, known, n=1, cutoff=_MISTYPED)
        if meant and name not in known and len(name) >= _LONG:
            raise AttributeError(f"{name}: an experiment has no such attribute; did you mean {meant[0]}?")
        super().__setattr__(name, value)


# --- requested -------------------------------------------------------------------------------------------------------
# Turn a declared experiment into a request, with the code that reads the command line, and into tracker settings.


@dataclass(frozen=True, kw_only=True)
class DeclaredExperiment:
    """The content of an experiment file or of a Python declaration."""

    file: FileSettings = NO_FILE  # as if read from a TOML file
    about: dict[str, Any] = field(default_factory=dict)  # the author's remarks
    tracking: Tracking = field(default_factory=Tracking)

    @property
    def asked(self) -> AskedExperiment:
        """The requested experiment, without flags. Messages of UsageErrors spell settings as in Python."""
        with spelled(in_python()):
            return parse(request(self.file))


def parse_experiment(experiment: ABExperiment, folder: Path | None = None) -> AskedExperiment:
    """Return the request of `experiment` after every check that does not need the machine; UsageError if a check fails.

    `folder` is the base of relative paths in settings, by default the working directory.
    """
    return parse_declaration(experiment, folder or Path.cwd()).asked


def parse_declaration(experiment: ABExperiment, folder: Path) -> DeclaredExperiment:
    """Read `experiment` without parsing its settings; UsageError if a name, a variant or a text is invalid."""
    for what in ("name", "description", "date", "wandb_project", "wandb_entity"):
        if not isinstance(value := getattr(experiment, what), str):
            raise UsageError(f"the {what} of an experiment must be text, not {value!r}")
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
            raise UsageError(f"{where}: a variant must be an ABVariant, not {variant!r}")
        for what in ("name", "description", "run"):
            if not isinstance(value := getattr(variant, what), str):
                raise UsageError(f"{where}: the {what} of a variant must be text, not {value!r}")
        if variant.name in names:
            raise UsageError(f"{where}: there are two variants {variant.name!r}; rename one of them")
        if not isinstance(variant.tags, list | tuple) or not all(isinstance(tag, str) for tag in variant.tags):
            raise UsageError(f"variant {variant.name!r}: tags must be a list, as in ['a', 'b'], not {variant.tags!r}")
        names.append(variant.name)
    if not names:
        raise UsageError(f"{where} has no variant; add one, or two to compare")


def _common(experiment: ABExperiment, folder: Path) -> Iterator[Assignment]:
    where = f"experiment {experiment.name!r}"
    yield Assignment("name", experiment.name, f"{where}, name", folder, is_text=False)
    if experiment.runs_per_variant is not None:
        yield Assignment(
            "seeds", plain(experiment.runs_per_variant), f"{where}, runs per variant",
            folder, is_text=False,
        )
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
    yield from (
        Assignment(SHORT.get(key, key), value, f"{where}: {key}", folder, is_text=False)
        for key, value in values.items()
    )


def tracking_of(experiment: ABExperiment) -> Tracking:
    """Return the tracking settings with the experiment's description, its variants' tags and W&B names."""
    told = experiment.tracking
    if not isinstance(told, Tracking):
        raise UsageError(f"experiment {experiment.name!r}: tracking must be an esper_ab.trackers.settings.Tracking")
    if experiment.wandb_entity or experiment.wandb_project:
        told = msgspec.structs.replace(
            told, wandb="online" if told.wandb == "off" else told.wandb,
            wandb_entity=experiment.wandb_entity, wandb_project=experiment.wandb_project,
        )  # fmt: skip
    if experiment.date and not told.wandb_project:
        told = msgspec.structs.replace(told, wandb_project=f"ab_test_{experiment.name}_{experiment.date}")
    tags = {variant.name: (*variant.tags, *filter(None, [variant.run])) for variant in experiment.variants}
    tagged = {name: own for name, own in tags.items() if own}
    return msgspec.structs.replace(told, description=experiment.description, tags=tagged)


def about(experiment: ABExperiment) -> dict[str, Any]:
    """Return the author's remarks, which affect nothing, for the [record] table of experiment.toml; `launch` skips it.
    """
    variants = {
        variant.name: {"description": variant.description, "tags": list(variant.tags), "run": variant.run}
        for variant in experiment.variants
    }
    return {"description": experiment.description, "date": experiment.date or str(date.today()), "variants": variants}


# --- builder ---------------------------------------------------------------------------------------------------------
# `create_experiment(...)`: an experiment in one expression, checked when it is built.
#
# from esper_ab import create_experiment
#
# experiment = (
#     create_experiment("rates", description="Does a higher learning rate help?")
#     .add_variant("slow", ppo__lr=1e-4)
#     .add_variant("fast", ppo__lr=1e-3)
#     .set_runs_per_variant(6)
#     .set_base_config(episodes=20, n_envs=8)
#     .build()
# )


def create_experiment(name: str, description: str = "", date: str = "") -> ExperimentBuilder:
    """Return a builder: add variants, then call `build()`. `name` also names the experiment directory."""
    return ExperimentBuilder(ABExperiment(name=name, description=description, date=date))


@dataclass(frozen=True)
class ExperimentBuilder:
    """An experiment that is being built. Every method returns a new builder and leaves this builder unchanged."""

    so_far: ABExperiment  # never changed

    def add_variant(
        self, name: str, description: str = "", overrides: Settings | None = None, *, tags: Sequence[str] = (),
        run: str = "", **settings: Any,
    ) -> ExperimentBuilder:  # fmt: skip
        """Add a group. Give its settings as keywords with two underscores, or as dotted keys in `overrides`.

        `ppo__lr=1e-3` and `overrides={"ppo.lr": 1e-3}` are equivalent. `tags` and `run` are for trackers.
        """
        own = _once(overrides, settings, f"variant {name!r}")
        tags = list(tags) if isinstance(tags, list | tuple) else tags  # `build` refuses anything else
        return self._with(variants=[*self.so_far.variants, ABVariant(name, description, own, tags, run)])

    def set_runs_per_variant(self, runs: int) -> ExperimentBuilder:
        """Set the number of seeds; a verdict needs at least six."""
        return self._with(runs_per_variant=runs)

    def set_base_config(self, overrides: Settings | None = None, **settings: Any) -> ExperimentBuilder:
        """Change settings of the experiment and of all variants, with any key of the command line or of a file.

        A key that is already set gets the new value.
        """
        new = _once(overrides, settings, "set_base_config")
        return self._with(base_config={**self.so_far.base_config, **new})

    def set_tracking(self, **tracking: Any) -> ExperimentBuilder:
        """Choose the trackers that follow the experiment, as in `wandb="offline"` or `tensorboard=True`.

        The keywords are fields of `esper_ab.trackers.settings.Tracking`. Trackers never affect results.
        """
        return self._with(tracking=change_tracking(self.so_far.tracking, tracking))

    def set_wandb_config(
        self, entity: str = "", project: str = "", mode: Literal["online", "offline"] | None = None
    ) -> ExperimentBuilder:
        """Follow the experiment in Weights & Biases; the default `project` is ab_test_NAME_DATE.

        If `mode` is None, an earlier choice is kept; if there was no earlier choice, the mode is online.
        """
        before = self.so_far.tracking.wandb
        wandb = mode or ("online" if before == "off" else before)
        return self.set_tracking(wandb=wandb, wandb_entity=entity, wandb_project=project)

    def build(self) -> ABExperiment:
        """Return the experiment. Raises UsageError, with a one-line message, if anything in it is invalid."""
        parse_experiment(self.so_far)
        return copy.deepcopy(self.so_far)  # the experiment can be changed, the builder cannot

    def _with(self, **changes: Any) -> ExperimentBuilder:
        return ExperimentBuilder(replace(self.so_far, **changes))


def _once(overrides: Settings | None, settings: Settings, where: str) -> Settings:
    """Merge the settings in `overrides` with those in keywords, by dotted key; UsageError if both set the same key."""
    told, more = dotted({} if overrides is None else overrides), dotted(settings)
    for key in told.keys() & more.keys():
        raise UsageError(f"{where}: {key} is set twice")
    return {**told, **more}
