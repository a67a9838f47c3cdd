"""Experiments as Python classes: what their author declares. Nothing here knows a setting or checks a value.

A variant is a group and runs per variant are replicates; `parse_experiment` reads them, and keeps nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches

from esper_ab.api.setting_names import Settings
from esper_ab.trackers.settings import Tracking

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
