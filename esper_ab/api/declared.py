"""Experiments as Python classes. This part knows no setting and checks no value.

A variant is a group, and runs per variant are seeds; `parse_experiment` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches

from esper_ab.api.setting_names import Overrides
from esper_ab.trackers.settings import Tracking

_MISTYPED, _LONG = 0.85, 8  # similarity and length above which an unknown attribute is treated as a typo


@dataclass
class ABVariant:
    """One group of an experiment, with its own name and settings.

    `overrides` are, by key, the settings in which this group differs from the defaults. `tags` are for trackers, and
    `run` is an additional tag.
    """

    name: str
    description: str = ""
    overrides: Overrides = field(default_factory=dict)
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
    base_config: Overrides = field(default_factory=dict)
    date: str = ""
    wandb_project: str = ""
    wandb_entity: str = ""
    tracking: Tracking = field(default_factory=Tracking)

    def add_variant(self, variant: ABVariant) -> None:
        """Append a variant."""
        self.variants = [*self.variants, variant]

    def __setattr__(self, name: str, value: object) -> None:
        known_names = [field.name for field in fields(ABExperiment)]
        close = get_close_matches(name, known_names, n=1, cutoff=_MISTYPED)
        if close and name not in known_names and len(name) >= _LONG:
            raise AttributeError(f"{name}: an experiment has no such attribute; did you mean {close[0]}?")
        super().__setattr__(name, value)
