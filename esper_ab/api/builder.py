"""`create_experiment(...)`: an experiment in one expression, checked when it is built.

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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from esper_ab.api.arguments import change_tracking
from esper_ab.api.asked import parse_experiment
from esper_ab.api.declared import ABExperiment, ABVariant
from esper_ab.api.setting_names import Settings, dotted
from esper_ab.contracts.errors import UsageError
from esper_ab.trackers.settings import Tracking


def create_experiment(name: str, description: str = "", date: str = "") -> ExperimentBuilder:
    """Begin an experiment: add variants to it and `build()` it. `name` names its directory, too."""
    return ExperimentBuilder(name=name, description=description, date=date)


@dataclass(frozen=True, kw_only=True)
class ExperimentBuilder:
    """An experiment in the making. Every method returns another builder and leaves this one as it is."""

    name: str
    description: str = ""
    date: str = ""
    variants: tuple[ABVariant, ...] = ()
    runs_per_variant: int | None = None
    base_config: Settings = field(default_factory=dict)
    tracking: Tracking = field(default_factory=Tracking)

    def add_variant(
        self, name: str, description: str = "", overrides: Settings | None = None, *, tags: Sequence[str] = (),
        run: str = "", **settings: Any,
    ) -> ExperimentBuilder:  # fmt: skip
        """Add a group. Its settings: as keywords with two underscores, or by dotted key in `overrides`.

        `ppo__lr=1e-3` and `overrides={"ppo.lr": 1e-3}` are the same. `tags` and `run` are for trackers.
        """
        own = _once(overrides, settings, f"variant {name!r}")
        tags = list(tags) if isinstance(tags, list | tuple) else tags  # anything else is for `build` to refuse
        variant = ABVariant(name, description, own, tags, run)
        return replace(self, variants=(*self.variants, variant))

    def set_runs_per_variant(self, runs: int) -> ExperimentBuilder:
        """Set the number of replicates: six are the least that can carry a verdict."""
        return replace(self, runs_per_variant=runs)

    def set_base_config(self, overrides: Settings | None = None, **settings: Any) -> ExperimentBuilder:
        """Set what all variants share and what is the experiment's own: whatever the command line and a file take.

        A key that was set before gets the new value.
        """
        new = _once(overrides, settings, "set_base_config")
        return replace(self, base_config={**self.base_config, **new})

    def set_tracking(self, **tracking: Any) -> ExperimentBuilder:
        """Choose the trackers that follow the run: `wandb="offline"`, `tensorboard=True`, …

        The fields of `esper_ab.trackers.settings.Tracking`. No result depends on them.
        """
        return replace(self, tracking=change_tracking(self.tracking, tracking))

    def set_wandb_config(
        self, entity: str = "", project: str = "", mode: Literal["online", "offline"] | None = None
    ) -> ExperimentBuilder:
        """Follow the run in Weights & Biases; `mode` as set before, else online. `project`: ab_test_{name}_{date}."""
        wandb = mode or ("online" if self.tracking.wandb == "off" else self.tracking.wandb)
        return self.set_tracking(wandb=wandb, wandb_entity=entity, wandb_project=project)

    def build(self) -> ABExperiment:
        """Return the experiment; UsageError, one line, for anything that cannot be honoured."""
        made = ABExperiment(
            name=self.name, description=self.description, variants=list(self.variants), date=self.date,
            runs_per_variant=self.runs_per_variant, base_config=self.base_config, tracking=self.tracking,
        )  # fmt: skip
        parse_experiment(made)
        return copy.deepcopy(made)  # as it can be changed, and the builder not


def _once(overrides: Settings | None, settings: Settings, where: str) -> Settings:
    """Merge both ways of giving settings, by dotted key; UsageError when one key is in both."""
    told, more = dotted({} if overrides is None else overrides), dotted(settings)
    for key in told.keys() & more.keys():
        raise UsageError(f"{where}: {key} is set twice")
    return {**told, **more}
