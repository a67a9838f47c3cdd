"""An experiment and its groups, as asked for and as resolved on a machine: two types, one for each state.

Both are validated once, frozen, and know every key; `parse` makes the first, `resolve` the second out of it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from esper_ab.contracts.kinds import TRAINER_PREFIX
from esper_ab.contracts.measures import Margin
from esper_ab.contracts.records import GroupName
from esper_ab.contracts.settings import (
    Arithmetic,
    GroupSettings,
    HostKernel,
    NonNegativeInt,
    PositiveInt,
    ProcessArithmetic,
    Settings,
)

Share = Annotated[float, Meta(ge=0.0, lt=1.0)]
ErrorRate = Annotated[float, Meta(gt=0.0, lt=0.5)]  # equivalence has an interval at 2 alpha


class Group(Settings, frozen=True, kw_only=True):
    """One training setup: a name and a value for every setting that may differ between groups."""

    name: GroupName
    settings: GroupSettings


class ExperimentSettings(Settings, frozen=True, kw_only=True):
    """The settings of an experiment, in either state. All are the same for every group, except what `groups` holds."""

    name: str  # of the experiment directory, too
    groups: tuple[Group, ...]
    task: str = "digits"
    data_dir: str = ""
    trainer: str = ""  # the user's own: a Python file, or a command with {seed}; "": the task says who trains
    trainer_folder: str = ""  # where a command runs
    rehearsal: tuple[str, ...] = ()  # NAME=VALUE: settings of the preflight's rehearsal of a trainer alone
    # Of a Gymnasium task: "info:KEY", or a user's function; "": the environment's own return. Of a trainer: a name, or
    # json:PATH:KEY, csv:PATH:COLUMN, wandb:KEY; "": the name "outcome".
    outcome: str = ""
    outcome_better: Literal["", "higher", "lower"] = ""  # "": higher; a trainer has to say it
    outcome_unit: str = ""
    outcome_range: str = ""  # LOW..HIGH, either may be left out; the worse end stands for what is no number
    slots: tuple[str, ...]  # network order
    n_envs: PositiveInt = 4
    episodes: PositiveInt = 3
    steps: PositiveInt = 25
    seeds: PositiveInt = 6
    rng_seed: NonNegativeInt = 0
    devices: tuple[str, ...]  # the pool: "cpu:0", "cuda:1"
    devices_per_run: PositiveInt = 1
    max_parallel: NonNegativeInt = 0  # runs that train at the same time, at most; 0: as many as the devices carry
    placement: Literal["auto", "spread", "share", "alternate", "sequence"]
    order: Literal["balanced", "fixed", "shuffled"] = "balanced"  # which group takes which position in a block
    sync: Literal["lockstep", "independent"] = "lockstep"
    unpaired: bool = False
    share_observation_norm: bool = False  # learners of a block normalise by the moments of all of them; a coupling
    telemetry: bool = True
    outcome_over: Literal["evaluation", "last-tenth", "curve-mean"] = "evaluation"  # what one run comes to
    alpha: ErrorRate = 0.05  # of the whole experiment, shared by its comparisons
    margin: Margin | None
    looks: tuple[PositiveInt, ...] = ()  # complete seeds at the looks; empty: design.default_looks
    control: str = ""  # the group that all others are compared with; "": all pairs
    untested: tuple[str, ...] = ()  # groups that are measured and in no comparison
    screening: bool = False  # judge the learning groups by the criteria of analysis/growth/screening.py
    early_stop: bool = True  # a decided comparison ends; a group without any other leaves later blocks
    futility: Share = 0.0  # power at the margin that stops for futility have to keep; 0: no look stops for it
    open_ended: bool = False  # no maximum: blocks of `seeds` are added until every comparison is decided


class AskedArithmetic(ProcessArithmetic, frozen=True, kw_only=True):
    """The arithmetic as requested: `resolve` replaces `auto` and `native` by what they mean on the machine."""

    kernel: Literal["auto", "native", HostKernel] = "auto"


class AskedExperiment(ExperimentSettings, frozen=True, kw_only=True):
    """The experiment as requested, checked as far as possible without the machine; `resolve` fills what is empty."""

    name: str = ""  # empty: one is generated
    eval_episodes: PositiveInt | Literal["auto"] = "auto"  # auto: by a calibration (settings/eval_episodes.py)
    slots: tuple[str, ...] = ()  # empty: all that the task has
    margin: Margin | None = None  # None: that of the task, where it declares one
    devices: tuple[str, ...] = ()  # empty: GPUs or cores, by an estimate; "cuda" and "cpu" are all of a kind
    placement: Literal["auto", "spread", "share", "alternate", "sequence"] = "auto"  # spread, or share on few devices
    arithmetic: AskedArithmetic = AskedArithmetic()


class ResolvedExperiment(ExperimentSettings, frozen=True, kw_only=True):
    """The experiment as it will run, with name, slots, devices, precisions and kernel, checked against this machine."""

    margin: Margin
    eval_episodes: PositiveInt  # grown by each trained policy's sampled actions; the same for every group
    placement: Literal["spread", "share", "alternate", "sequence"] = "spread"
    arithmetic: Arithmetic = Arithmetic()

    @property
    def task_title(self) -> str:
        """The task as people call it: a trainer's without the mark of its kind."""
        return self.task.removeprefix(TRAINER_PREFIX)
