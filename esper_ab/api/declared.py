"""Experiments as Python classes: what their author declares. Nothing here knows a setting or checks a value.

A variant is a group and runs per variant are replicates; `parse_experiment` reads them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from esper_ab.api.setting_names import Settings, read_only
from esper_ab.trackers.settings import Tracking

_MISTYPED, _LONG = 0.85, 8  # similarity and length from which an attribute is taken for a slip; others are a subclass's


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
        object.__setattr__(self, "overrides", read_only(self.overrides))
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
        self.base_config = read_only(self.base_config)
        self.__dict__["_sealed"] = True


class ABExperiment(Experiment):
    """An Experiment that can be changed until it is run."""

    def _seal(self) -> None:
        self.variants = list(self.variants)


def _sealed(variant: Variant | ABVariant) -> Variant | ABVariant:
    """Copy an ABVariant as a Variant; what is no variant at all is left for `parse_experiment` to refuse."""
    if not isinstance(variant, ABVariant):
        return variant
    return Variant(variant.name, variant.description, variant.overrides, variant.tags, variant.run)


def _tuple(tags: Iterable[str]) -> Sequence[str]:
    """Return a tuple of tags; what is no list of them, as a string, is left for `parse_experiment` to refuse."""
    return tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else tags
