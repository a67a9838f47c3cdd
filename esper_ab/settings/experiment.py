"""An experiment and its groups in two states: as requested, and as resolved on a machine.

Each state has its own type, which is frozen and validated and has a field for every key. `parse` returns the requested
experiment, and `resolve` turns a requested experiment into a resolved one. This module also lists the settings in which
groups differ, and describes the initial bias of policies in words.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from esper_ab.contracts.claim import Claim
from esper_ab.contracts.code_state import read_code
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.measures import Margin, Unit
from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.records import GroupName
from esper_ab.contracts.settings import (
    POLICIES,
    Arithmetic,
    GroupSettings,
    HostKernel,
    NonNegativeInt,
    PositiveInt,
    ProcessArithmetic,
    Settings,
    Spec,
    Variances,
)
from esper_ab.contracts.trainer import TRAINER_PREFIX, check_reference

Share = Annotated[float, Meta(ge=0.0, lt=1.0)]
# An equivalence test uses an interval at 2 alpha; below 1e-12, quantiles are less exact than alpha is small.
ErrorRate = Annotated[float, Meta(ge=1e-12, lt=0.5), Spec(same=True)]
_ONE_LOOK = Spec(alone="all parts are judged once, when they are done")
_MANY_LOOKS = Spec(alone="all parts are judged once, so their number of seeds is fixed")
_GUARDED = "all parts are judged together, by their outcome only; launch each part by itself to guard its measures"
_IDENTICAL = "all parts are judged once, when they are done"
_EARLY_STOP = Spec(flag="no_early_stop", alone="all parts are judged once, when they are done")


class Group(Settings, frozen=True, kw_only=True):
    """One training setup: a name and a value for every setting that may differ between groups."""

    name: GroupName
    settings: GroupSettings


class ExperimentSettings(Settings, frozen=True, kw_only=True):
    """The settings that both states have. All of them, except `groups`, apply to every group."""

    name: Annotated[str, Spec(same=True)]  # also of the experiment directory
    groups: tuple[Group, ...]
    task: Annotated[str, Spec((POLICIES,), names="task", same=True)] = "digits"
    data_dir: Annotated[str, Spec(("growth",), names="folder")] = ""
    # A Python file or a command with {seed}; "": trained by the task.
    trainer: Annotated[str, Spec(("trainer",), names="trainer")] = ""
    trainer_folder: Annotated[str, Spec(("trainer",), names="folder")] = ""  # where a command runs
    # NAME=STATE: the state of the code that each group is trained with, a commit or a folder; empty: the files as they
    # are. Once resolved, each is a commit.
    code: Annotated[tuple[str, ...], Spec(("trainer",), names="code", later=True)] = ()
    # Folder of an earlier experiment that keeps states of `code` which are no commits of the user's.
    code_kept: Annotated[str, Spec(("trainer",), names="folder", later=True)] = ""
    # NAME=VALUE: settings that apply only to the preflight's rehearsal of a trainer.
    rehearsal: Annotated[tuple[str, ...], Spec(("trainer",))] = ()
    # For Gymnasium: "info:KEY", or a user's function; "": the environment's own return. For a trainer: a name, or
    # json:PATH:KEY, csv:PATH:COLUMN, wandb:KEY; "": the name "outcome".
    outcome: Annotated[str, Spec(("gymnasium", "trainer"), names="function")] = ""
    # For a command: how the numbers of its source become the outcome (contracts/outcome_summary.py); "": the last one.
    outcome_summary: Annotated[str, Spec(("trainer",), later=True)] = ""
    # "": higher; required for a trainer.
    outcome_better: Annotated[Literal["", "higher", "lower"], Spec(("gymnasium", "trainer"))] = ""
    outcome_unit: Annotated[Unit, Spec(("trainer",))] = ""
    # LOW..HIGH, either may be omitted; a NaN counts as the worse end.
    outcome_range: Annotated[str, Spec(("gymnasium", "trainer"))] = ""
    # For a command: end a run that has its result and does nothing.
    end_idle: Annotated[bool, Spec(("trainer",))] = False
    slots: tuple[str, ...]  # network order
    n_envs: Annotated[PositiveInt, Spec((POLICIES,))] = 4
    episodes: PositiveInt = 3
    # In Gymnasium only a limit, because its episodes have lengths of their own.
    steps: Annotated[PositiveInt, Spec((POLICIES,))] = 25
    seeds: Annotated[PositiveInt, Spec(same=True)] = 6
    rng_seed: Annotated[NonNegativeInt, Spec(same=True)] = 0
    devices: tuple[str, ...]  # the pool: "cpu:0", "cuda:1"
    devices_per_run: Annotated[PositiveInt, Spec((POLICIES, "trainer"))] = 1
    max_parallel: NonNegativeInt = 0  # most runs that train at the same time; 0: as many as the devices allow
    placement: Literal["auto", "spread", "share", "alternate", "sequence"]
    order: Literal["balanced", "fixed", "shuffled"] = "balanced"  # how groups are assigned to positions in a block
    sync: Literal["lockstep", "independent"] = "lockstep"
    unpaired: Annotated[bool, Spec(alone="all parts are compared seed by seed, which needs paired runs")] = False
    telemetry: Annotated[bool, Spec((POLICIES,), flag="no_telemetry")] = True
    # The part of a run that its outcome summarises.
    outcome_over: Annotated[OutcomeOver, Spec(same=True)] = "evaluation"
    alpha: ErrorRate = 0.05  # of the whole experiment, shared by its comparisons
    margin: Margin | None
    # What the plan sets out to show; not-worse is one-sided: that a group is not worse by the margin or more.
    claim: Annotated[Claim, Spec(same=True, later=True)] = "difference"
    # Further measures that must not get worse, in the order of their tests: "lower wall_s margin 10%".
    guardrails: Annotated[tuple[str, ...], Spec(flag="guardrail", alone=_GUARDED, later=True)] = ()
    # Complete seeds at the looks; empty: design.default_looks.
    looks: Annotated[tuple[PositiveInt, ...], _ONE_LOOK] = ()
    control: Annotated[str, Spec(same=True)] = ""  # the group that all others are compared with; "": all pairs
    # Groups that are measured without being compared.
    untested: Annotated[tuple[str, ...], Spec(same=True, alone="every group is compared in every part")] = ()
    # A decided comparison ends; a group without an open comparison leaves later blocks.
    early_stop: Annotated[bool, _EARLY_STOP] = True
    # Seeds after which the experiment ends if all records of its groups agree to the bit; 0: it goes on.
    identical_after: Annotated[NonNegativeInt, Spec(alone=_IDENTICAL, later=True)] = 0
    # Power at the margin that stopping for futility must keep; 0: no such stopping.
    futility: Annotated[Share, _ONE_LOOK] = 0.0
    # moderated: each comparison's variance is shrunk to the mean of all (stats/moderated_variance.py).
    variances: Annotated[Variances, Spec(same=True, later=True)] = "own"
    # any: claims must hold whatever the shapes of the groups' distributions of outcomes, not only if they are the same.
    shape: Annotated[Literal["same", "any"], Spec(same=True, later=True)] = "same"
    # No maximum: blocks of `seeds` are added until every comparison is decided.
    open_ended: Annotated[bool, _MANY_LOOKS] = False

    @property
    def states_of_code(self) -> dict[str, str]:
        """The state of the code of each group; {}: the files as they are."""
        return read_code(self.code)

    @property
    def takes_turns(self) -> bool:
        """Whether one run of a seed works at a time."""
        return self.placement in ("alternate", "sequence")


class AskedArithmetic(ProcessArithmetic, frozen=True, kw_only=True):
    """The arithmetic as requested; `resolve` replaces `auto` and `native` by a kernel that this machine has."""

    kernel: Annotated[Literal["auto", "native", HostKernel], Spec((POLICIES,), flag="kernel")] = "auto"
    # kernel: hosts use the kernel if possible; with `auto`, torch does the rest.
    hosts: Annotated[Literal["kernel", "torch"], Spec(("growth",))] = "kernel"


class AskedExperiment(ExperimentSettings, frozen=True, kw_only=True):
    """The experiment as requested, after every check that does not need the machine; `resolve` fills in the rest."""

    name: Annotated[str, Spec(same=True)] = ""  # empty: one is generated
    # Environment steps of a run, which determine the number of rollouts instead of `episodes`; 0: not given.
    total_timesteps: Annotated[NonNegativeInt, Spec(("gymnasium",))] = 0
    eval_episodes: PositiveInt | Literal["auto"] = "auto"  # auto: by a calibration (settings/eval_episodes.py)
    slots: Annotated[tuple[str, ...], Spec(("growth",))] = ()  # empty: all of the task's
    margin: Margin | None = None  # None: the task's own, if it declares one
    devices: tuple[str, ...] = ()  # empty: all GPUs or, without any, cores; "cuda" or "cpu": all of a kind
    placement: Literal["auto", "spread", "share", "alternate", "sequence"] = "auto"  # spread, or share on few devices
    arithmetic: AskedArithmetic = AskedArithmetic()


class ResolvedExperiment(ExperimentSettings, frozen=True, kw_only=True):
    """The experiment as it will run: name, slots, devices, precision and kernel are chosen for the machine."""

    margin: Margin
    eval_episodes: PositiveInt  # played with each trained policy's sampled actions; the same for every group
    placement: Literal["spread", "share", "alternate", "sequence"] = "spread"
    arithmetic: Arithmetic = Arithmetic()

    def __post_init__(self) -> None:
        if self.trainer:
            check_reference(self.trainer)
        if self.code and {*self.states_of_code} != {group.name for group in self.groups}:
            raise ValueError("code: expected one state for each group")

    @property
    def task_title(self) -> str:
        """The task's name for users; a trainer's name omits the prefix of the kind."""
        return self.task.removeprefix(TRAINER_PREFIX)


MOST_RUNS = 200_000  # of an experiment, in all parts; more would take minutes to plan and gigabytes to keep


def refuse_too_many(groups: int, seeds: int, parts: int = 1) -> None:
    """Raise UsageError if an experiment would have more than MOST_RUNS runs."""
    if (runs := groups * seeds * parts) > MOST_RUNS:
        runs_words = f"{runs:,} runs, but an experiment has at most {MOST_RUNS:,}"
        raise UsageError(
            SettingName("seeds", seeds),
            f": {runs_words}; with so many groups, at most ",
            SettingName("seeds", max(1, MOST_RUNS // (groups * parts))),
        )
