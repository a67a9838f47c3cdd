"""Experiments as Python: `create_experiment(...)`, the plain classes, and how either becomes what was asked.

A variant is a group and runs per variant are replicates. Nothing here knows a setting: every key and value goes through
`esper_ab.settings.parse`, as one from the command line or a file does, and is refused there in the same words.

    from esper_ab import create_experiment

    experiment = (
        create_experiment("rates", description="Does a higher learning rate help?")
        .add_variant("slow", ppo__lr=1e-4)
        .add_variant("fast", ppo__lr=1e-3)
        .set_runs_per_variant(6)
        .set_base_config(episodes=20, n_envs=8)
        .build()
    )
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from esper_ab.api.keys import ReadOnly, dotted
from esper_ab.contracts.errors import UsageError
from esper_ab.trackers.settings import Tracking

if TYPE_CHECKING:
    from esper_ab.settings.experiment import ExperimentSettings

_MISTYPED, _LONG = 0.85, 8  # similarity and length from which an attribute is taken for a slip; others are a subclass's
Settings: TypeAlias = Mapping[str, Any]  # by key: "ppo.lr", "ppo__lr", or nested as in a TOML file


@dataclass(frozen=True)
class Variant:
    """One condition under a name of its own; immutable.

    `overrides`: in which settings it differs, by key. `tags`, and `run` as one more tag, are for trackers.
    """

    name: str
    description: str = ""
    overrides: Settings = field(default_factory=dict)
    tags: Sequence[str] = ()
    run: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "overrides", _copied(self.overrides))
        object.__setattr__(self, "tags", _tuple(self.tags))


@dataclass
class ABVariant:
    """A Variant that can be changed until it is run."""

    name: str
    description: str = ""
    overrides: Settings = field(default_factory=dict)
    tags: Sequence[str] = field(default_factory=list)
    run: str = ""


class _Sealing(type):
    """Objects of such a class can be changed while they are constructed, subclasses' constructors included."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        made = super().__call__(*args, **named)
        made._seal()
        return made

    @property
    def __signature__(cls) -> inspect.Signature:
        """Of the constructor, which `help` would not find behind `__call__`."""
        _, *parameters = inspect.signature(type.__getattribute__(cls, "__init__")).parameters.values()
        return inspect.Signature(parameters)


@dataclass
class Experiment(metaclass=_Sealing):
    """What is to be compared; immutable once it is made. `esper_ab.run_ab_test` runs it.

    `runs_per_variant`: None is what the command line does without `--replicates`. `base_config`: settings of every
    variant and of the experiment. `date`: for the name of a W&B project; "" is today. A subclass may call
    `add_variant` and set attributes in its `__init__`.
    """

    name: str
    description: str = ""
    variants: Sequence[Variant | ABVariant] = ()
    runs_per_variant: int | None = None
    base_config: Settings = field(default_factory=dict)
    date: str = ""
    wandb_project: str = ""
    wandb_entity: str = ""
    tracking: Tracking = field(default_factory=Tracking)

    def add_variant(self, variant: Variant | ABVariant) -> None:
        """One more variant; of an Experiment only while it is constructed."""
        self.variants = [*self.variants, variant]

    def settings(self, folder: Path | None = None) -> ExperimentSettings:
        """What is asked for, checked as far as it can be without the machine; UsageError saying what would be right.

        `folder`: where relative paths in settings begin; the working directory by default.
        """
        from esper_ab.api.asked import asked_of

        return asked_of(self, folder or Path.cwd())

    def __setattr__(self, name: str, value: object) -> None:
        if self.__dict__.get("_sealed"):
            raise AttributeError(f"{name}: an Experiment cannot be changed once it is made; an ABExperiment can")
        known = [field.name for field in fields(Experiment)]
        meant = get_close_matches(name, known, n=1, cutoff=_MISTYPED)
        if meant and name not in known and len(name) >= _LONG:
            raise AttributeError(f"{name}: an experiment has no such attribute; did you mean {meant[0]}?")
        super().__setattr__(name, value)

    def _seal(self) -> None:
        self.variants = tuple(_sealed(variant) for variant in self.variants)
        self.base_config = _copied(self.base_config)
        self.__dict__["_sealed"] = True


class ABExperiment(Experiment):
    """An Experiment that can be changed until it is run."""

    def _seal(self) -> None:
        self.variants = list(self.variants)


def _sealed(variant: Variant | ABVariant) -> Variant | ABVariant:
    """What is no variant at all is left for `settings` to refuse."""
    if not isinstance(variant, ABVariant):
        return variant
    return Variant(variant.name, variant.description, variant.overrides, variant.tags, variant.run)


def _copied(settings: Settings) -> Settings:
    """Nobody else's object, and read only; what is no mapping is left for `settings` to refuse."""
    return ReadOnly(copy.deepcopy(dict(settings))) if isinstance(settings, Mapping) else settings


def _tuple(tags: Iterable[str]) -> Sequence[str]:
    """What is no list of tags, as one string that would be taken apart, is left for `settings` to refuse."""
    return tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else tags


def create_experiment(name: str, description: str = "", date: str = "") -> ExperimentBuilder:
    """The beginning of an experiment: add variants to it and `build()` it. `name` names its run directory, too."""
    return ExperimentBuilder(name=name, description=description, date=date)


@dataclass(frozen=True, kw_only=True)
class ExperimentBuilder:
    """An experiment in the making. Every method returns another builder and leaves this one as it is."""

    name: str
    description: str = ""
    date: str = ""
    variants: tuple[Variant, ...] = ()
    runs_per_variant: int | None = None
    base_config: Settings = field(default_factory=dict)
    tracking: Tracking = field(default_factory=Tracking)

    def add_variant(
        self, name: str, description: str = "", overrides: Settings | None = None, *, tags: Iterable[str] = (),
        run: str = "", **settings: Any,
    ) -> ExperimentBuilder:  # fmt: skip
        """One more condition. Its settings: as keywords with two underscores, or by dotted key in `overrides`.

        `ppo__lr=1e-3` and `overrides={"ppo.lr": 1e-3}` are the same. `tags` and `run` are for trackers.
        """
        own = _once(overrides, settings, f"variant {name!r}")
        variant = Variant(name, description, own, _tuple(tags), run)
        return replace(self, variants=(*self.variants, variant))

    def set_runs_per_variant(self, runs: int) -> ExperimentBuilder:
        """Replicates: six are the least that can carry a verdict."""
        return replace(self, runs_per_variant=runs)

    def set_base_config(self, overrides: Settings | None = None, **settings: Any) -> ExperimentBuilder:
        """Settings of all variants and of the experiment: whatever the command line and a file take.

        A key that was set before gets the new value.
        """
        new = _once(overrides, settings, "set_base_config")
        return replace(self, base_config=_copied({**self.base_config, **new}))

    def set_tracking(self, **tracking: Any) -> ExperimentBuilder:
        """Which trackers follow the run: `wandb="offline"`, `tensorboard=True`, `mlflow=True`, `mlflow_uri=…`, …

        The fields of `esper_ab.trackers.settings.Tracking`. No result depends on them.
        """
        from esper_ab.api.asked import checked_tracking

        return replace(self, tracking=checked_tracking(self.tracking, tracking))

    def set_wandb_config(
        self, entity: str = "", project: str = "", mode: Literal["online", "offline"] | None = None
    ) -> ExperimentBuilder:
        """Follow the run in Weights & Biases; `mode` as set before, else online. `project`: ab_test_{name}_{date}."""
        wandb = mode or ("online" if self.tracking.wandb == "off" else self.tracking.wandb)
        return self.set_tracking(wandb=wandb, wandb_entity=entity, wandb_project=project)

    def build(self) -> Experiment:
        """The experiment; UsageError, one line, for anything that cannot be honoured."""
        made = Experiment(
            name=self.name, description=self.description, variants=self.variants, date=self.date,
            runs_per_variant=self.runs_per_variant, base_config=self.base_config, tracking=self.tracking,
        )  # fmt: skip
        made.settings()
        return made


def _once(overrides: Settings | None, settings: Settings, where: str) -> Settings:
    """Both ways of saying settings together, by dotted key; UsageError when one key is said in both."""
    told, more = dotted({} if overrides is None else overrides), dotted(settings)
    for key in told.keys() & more.keys():
        raise UsageError(f"{where}: {key} is set twice")
    return {**told, **more}
