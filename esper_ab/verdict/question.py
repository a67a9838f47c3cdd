"""The question of one comparison, the items that it is about, and the runs that it lost. Types only."""

from __future__ import annotations

import msgspec

from esper_ab.design.design import Design
from esper_ab.verdict.items_below import Level


class AskedItems(msgspec.Struct, frozen=True, kw_only=True):
    """The items below the runs of a comparison, and the level of the answer."""

    level: Level
    closed: bool  # the answer is about these very items, a benchmark
    unit: str  # the word for an item, such as "question"
    items: int  # of the group with fewer
    runs_a: int
    runs_b: int
    shared: bool  # both groups have the same items


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The question about the difference a - b, under the design that was declared before the first run."""

    a: str
    b: str
    design: Design
    planned: int  # replicates planned now; a plan without maximum adds more
    scope: str  # what the answer is conditional on, in words: task, horizon, PPO settings, budget; no full stop
    paired: bool = True  # False: the runs of a replicate do not share randomness
    run_sd: float | None = None  # SD of runs of one group from a calibration, in the unit of differences; None: unknown
    recorded: bool = True  # False: the runs were done elsewhere, and only their outcomes are known
    has_records: bool = True  # of esper_ab's own runs, also of several experiments together
    same_settings: bool = False  # the groups differ in no setting that they read
    coarse: bool = False  # equal records show little, because most of them are those of several seeds
    other_code: bool = False  # the groups differ in code: in its state, or in the function that is called
    declared: bool = True  # False: asked after the runs, so that the answer is exploratory
    task: str = ""  # the task, or the mean over tasks; "": there are no tasks
    unit: str = ""  # what the headline counts for each group, for runs done elsewhere: "training run"
    items: AskedItems | None = None  # None: a row is a run, without items
    rng_seed: int = 0  # of the bootstraps: from the plan's digest, so that the same plan gives the same bytes

    @property
    def same_computation(self) -> bool:
        """True if the groups differ neither in settings nor in code, so that equal records were certain."""
        return self.same_settings and not self.other_code

    @property
    def level(self) -> Level | None:
        """What the answer is about: these checkpoints, or trainings; None: a row is a run, without items."""
        return None if self.items is None else self.items.level

    @property
    def row(self) -> str:
        """What a row is: an item of checkpoints, or a run."""
        return self.items.unit if self.items is not None and self.items.level == "checkpoints" else "run"

    @property
    def alpha(self) -> float:
        """Share of alpha that this comparison holds before any comparison is decided."""
        return self.design.alpha / len(self.design.comparisons)

    @property
    def sign(self) -> float:
        """Sign of a difference in favour of a: -1.0 if lower is better, else 1.0."""
        return self.design.outcome.sign

    @property
    def worst_flag(self) -> str:
        """The flag that declares the worst outcome of a run."""
        return "--outcome-range" if self.has_records else "--worst"

    @property
    def open_ended(self) -> bool:
        """True if replicates are added until there is a decision."""
        return not self.design.looks


class HalfPair(msgspec.Struct, frozen=True, kw_only=True):
    """A replicate that was given up, with the outcomes known by then and the run that failed.

    A run that was only cancelled because its block could not continue is not a loss of its group.
    """

    replicate: int
    a: float | None
    b: float | None
    failed_a: bool
    failed_b: bool
    position_a: int
    position_b: int


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """The replicates that have no pair because a run was lost to a failure. Divergence is an outcome, not a loss."""

    replicates: tuple[HalfPair, ...] = ()
    paired: bool = True  # False: each is one lost run, which never had a partner

    @property
    def a(self) -> int:
        """Number of replicates given up because the run of group a failed."""
        return sum(lost_pair.failed_a for lost_pair in self.replicates)

    @property
    def b(self) -> int:
        """Number of replicates given up because the run of group b failed."""
        return sum(lost_pair.failed_b for lost_pair in self.replicates)

    @property
    def cancelled(self) -> tuple[int, int]:
        """Numbers of runs of a and of b that did not fail themselves but were cancelled or have no partner."""
        if not self.paired:
            return 0, 0
        failed_pairs = [lost_pair for lost_pair in self.replicates if lost_pair.failed_a or lost_pair.failed_b]
        cancelled_a = sum(not lost_pair.failed_a for lost_pair in failed_pairs)
        cancelled_b = sum(not lost_pair.failed_b for lost_pair in failed_pairs)
        return cancelled_a, cancelled_b

    def before(self, replicate: int) -> Lost:
        """Return the losses among the replicates before number `replicate`."""
        earlier_pairs = tuple(lost_pair for lost_pair in self.replicates if lost_pair.replicate < replicate)
        return msgspec.structs.replace(self, replicates=earlier_pairs)
