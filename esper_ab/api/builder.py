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
from dataclasses import dataclass, replace
from typing import Any, Literal

from esper_ab.api.arguments import change_tracking
from esper_ab.api.declared import ABExperiment, ABVariant
from esper_ab.api.requested import parse_experiment
from esper_ab.api.setting_names import Overrides, dotted
from esper_ab.contracts.errors import UsageError


def create_experiment(name: str, description: str = "", date: str = "") -> ExperimentBuilder:
    """Return a builder: add variants, then call `build()`. `name` also names the experiment directory."""
    return ExperimentBuilder(ABExperiment(name=name, description=description, date=date))


@dataclass(frozen=True)
class ExperimentBuilder:
    """An experiment that is being built. Every method returns a new builder and leaves this builder unchanged."""

    so_far: ABExperiment  # never changed

    def add_variant(
        self,
        name: str,
        description: str = "",
        overrides: Overrides | None = None,
        *,
        tags: Sequence[str] = (),
        run: str = "",
        **settings: Any,
    ) -> ExperimentBuilder:
        """Add a group. Give its settings as keywords with two underscores, or as dotted keys in `overrides`.

        `ppo__lr=1e-3` and `overrides={"ppo.lr": 1e-3}` are equivalent. `tags` and `run` are for trackers.
        """
        own_overrides = _merge_overrides(overrides, settings, f"variant {name!r}")
        if isinstance(tags, list | tuple):  # `build` refuses anything else
            tags = list(tags)
        return self._copy(variants=[*self.so_far.variants, ABVariant(name, description, own_overrides, tags, run)])

    def set_runs_per_variant(self, runs: int) -> ExperimentBuilder:
        """Set the number of seeds; a verdict needs at least six."""
        return self._copy(runs_per_variant=runs)

    def set_base_config(self, overrides: Overrides | None = None, **settings: Any) -> ExperimentBuilder:
        """Change settings of the experiment and of all variants, with any key of the command line or of a file.

        A key that is already set gets the new value.
        """
        new_settings = _merge_overrides(overrides, settings, "set_base_config")
        return self._copy(base_config={**self.so_far.base_config, **new_settings})

    def set_tracking(self, **tracking: Any) -> ExperimentBuilder:
        """Choose the trackers that follow the experiment, as in `wandb="offline"` or `tensorboard=True`.

        The keywords are fields of `esper_ab.trackers.settings.Tracking`. Trackers never affect results.
        """
        return self._copy(tracking=change_tracking(self.so_far.tracking, tracking))

    def set_wandb_config(
        self, entity: str = "", project: str = "", mode: Literal["online", "offline"] | None = None
    ) -> ExperimentBuilder:
        """Follow the experiment in Weights & Biases; the default `project` is ab_test_NAME_DATE.

        If `mode` is None, an earlier choice is kept; if there was no earlier choice, the mode is online.
        """
        wandb = self.so_far.tracking.wandb
        if mode:
            wandb = mode
        elif wandb == "off":
            wandb = "online"
        return self.set_tracking(wandb=wandb, wandb_entity=entity, wandb_project=project)

    def build(self) -> ABExperiment:
        """Return the experiment. Raises UsageError, with a one-line message, if anything in it is invalid."""
        parse_experiment(self.so_far)
        return copy.deepcopy(self.so_far)  # the experiment can be changed, the builder cannot

    def _copy(self, **changes: Any) -> ExperimentBuilder:
        return ExperimentBuilder(replace(self.so_far, **changes))


def _merge_overrides(overrides: Overrides | None, settings: Overrides, place: str) -> Overrides:
    """Merge the settings in `overrides` with those in keywords, by dotted key; UsageError if both set the same key."""
    override_values: dict[str, Any] = {}
    if overrides is not None:
        override_values = dotted(overrides)
    keyword_values = dotted(settings)
    for key in override_values.keys() & keyword_values.keys():
        raise UsageError(f"{place}: {key} is set twice")
    return {**override_values, **keyword_values}
