"""Experiments as Python classes and expressions, and what was asked by them."""

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
# Experiments as Python classes: what their author declares. Nothing here knows a setting or checks a value.
#
# A variant is a group and runs per variant are replicates; `parse_experiment` reads them, and keeps nothing of them.


_MISTYPED, _LONG = 0.85, 8  # similarity and length from which an attribute is taken for a slip; others are a subclass's


@dataclass
class ABVariant:
    """One group under a name of its own.

    `overrides`: in which settings it differs, by key. `tags`, and `run` as one more tag, are for trackers.
    """

    name: str
    description: str = ""
    overrides: Settings = field(default_factory=dict)
    tags: Sequence[str] = field(default_factory=list)
    run: str = ""


@dataclass
class ABExperiment:
    """What is to be compared; `esper_ab.run_ab_test` runs it as it is at the call. Subclasses may add variants.

    `runs_per_variant`: None is what the command line does without `--seeds`. `base_config`: settings of every
    variant and of the experiment. `date`: for the name of a W&B project; "" is today.
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
        """Add one more variant."""
        self.variants = [*self.variants, variant]

    def __setattr__(self, name: str, value: object) -> None:
        known = [field.name for field in fields(ABExperiment)]
        meant = get_close_matches(name, known, n=1, cutoff=_MISTYPED)
        if meant and name not in known and len(name) >= _LONG:
            raise AttributeError(f"{name}: an experiment has no such attribute; did you mean {meant[0]}?")
        super().__setattr__(name, value)


# --- asked -----------------------------------------------------------------------------------------------------------
# A declared experiment -> what was asked, by the code that reads the command line, and what trackers are told.


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
        for what in ("name", "description", "run"):
            if not isinstance(value := getattr(variant, what), str):
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
        raise UsageError(f"experiment {experiment.name!r}: tracking is an esper_ab.trackers.settings.Tracking")
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
    """Return the remarks for [record] in experiment.toml; nothing depends on them, and `launch` skips them."""
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
    """Begin an experiment: add variants to it and `build()` it. `name` names its directory, too."""
    return ExperimentBuilder(ABExperiment(name=name, description=description, date=date))


@dataclass(frozen=True)
class ExperimentBuilder:
    """An experiment in the making. Every method returns another builder and leaves this one as it is."""

    so_far: ABExperiment  # never changed

    def add_variant(
        self, name: str, description: str = "", overrides: Settings | None = None, *, tags: Sequence[str] = (),
        run: str = "", **settings: Any,
    ) -> ExperimentBuilder:  # fmt: skip
        """Add a group. Its settings: as keywords with two underscores, or by dotted key in `overrides`.

        `ppo__lr=1e-3` and `overrides={"ppo.lr": 1e-3}` are the same. `tags` and `run` are for trackers.
        """
        own = _once(overrides, settings, f"variant {name!r}")
        tags = list(tags) if isinstance(tags, list | tuple) else tags  # anything else is for `build` to refuse
        return self._with(variants=[*self.so_far.variants, ABVariant(name, description, own, tags, run)])

    def set_runs_per_variant(self, runs: int) -> ExperimentBuilder:
        """Set the number of replicates: six are the least that can carry a verdict."""
        return self._with(runs_per_variant=runs)

    def set_base_config(self, overrides: Settings | None = None, **settings: Any) -> ExperimentBuilder:
        """Set what all variants share and what is the experiment's own: whatever the command line and a file take.

        A key that was set before gets the new value.
        """
        new = _once(overrides, settings, "set_base_config")
        return self._with(base_config={**self.so_far.base_config, **new})

    def set_tracking(self, **tracking: Any) -> ExperimentBuilder:
        """Choose the trackers that follow the run: `wandb="offline"`, `tensorboard=True`, …

        The fields of `esper_ab.trackers.settings.Tracking`. No result depends on them.
        """
        return self._with(tracking=change_tracking(self.so_far.tracking, tracking))

    def set_wandb_config(
        self, entity: str = "", project: str = "", mode: Literal["online", "offline"] | None = None
    ) -> ExperimentBuilder:
        """Follow the run in Weights & Biases; `mode` as set before, else online. `project`: ab_test_{name}_{date}."""
        before = self.so_far.tracking.wandb
        wandb = mode or ("online" if before == "off" else before)
        return self.set_tracking(wandb=wandb, wandb_entity=entity, wandb_project=project)

    def build(self) -> ABExperiment:
        """Return the experiment; UsageError, one line, for anything that cannot be honoured."""
        parse_experiment(self.so_far)
        return copy.deepcopy(self.so_far)  # as it can be changed, and the builder not

    def _with(self, **changes: Any) -> ExperimentBuilder:
        return ExperimentBuilder(replace(self.so_far, **changes))


def _once(overrides: Settings | None, settings: Settings, where: str) -> Settings:
    """Merge both ways of giving settings, by dotted key; UsageError when one key is in both."""
    told, more = dotted({} if overrides is None else overrides), dotted(settings)
    for key in told.keys() & more.keys():
        raise UsageError(f"{where}: {key} is set twice")
    return {**told, **more}
