"""The question of one comparison, and the runs that it lost. Types only."""

from __future__ import annotations

import msgspec

from esper_ab.design.design import Design


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The difference a - b, under the design that was declared before the first run."""

    a: str
    b: str
    design: Design
    planned: int  # replicates planned now; a plan without maximum adds more
    scope: str  # what the answer is conditional on, in words: task, horizon, PPO settings, budget; no full stop
    paired: bool = True  # False: the runs of a replicate do not share randomness
    run_sd: float | None = None  # SD of runs of one group from a calibration, as differences; None: unknown
    recorded: bool = True  # False: of runs that were made elsewhere, of which outcomes alone are known
    same_settings: bool = False  # no setting differs that one of the groups reads: equal records were certain
    declared: bool = True  # False: asked after the runs, so that what is found is exploratory
    task: str = ""  # in which it is asked, or the mean over tasks; "": there are no tasks
    unit: str = ""  # what of each group is counted, in the headline of numbers from elsewhere: "training run"
    rng_seed: int = 0  # of the bootstraps: from the plan's digest, so that the same plan gives the same bytes

    @property
    def alpha(self) -> float:
        """Share of alpha that this comparison holds before any other is decided."""
        return self.design.alpha / len(self.design.comparisons)

    @property
    def sign(self) -> float:
        """Of a difference in favour of a: -1.0 where lower is better, else 1.0."""
        return self.design.outcome.sign

    @property
    def open_ended(self) -> bool:
        """Whether replicates are added until there is a decision."""
        return not self.design.looks


class HalfPair(msgspec.Struct, frozen=True, kw_only=True):
    """A replicate that was given up: outcomes of the runs that had one by then, and whose run failed.

    A run that was only cancelled because its block could not go on is not a loss of its group.
    """

    replicate: int
    a: float | None
    b: float | None
    failed_a: bool
    failed_b: bool
    position_a: int
    position_b: int


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """The replicates that give no pair: a run was lost to a failure, not to divergence (that is an outcome)."""

    replicates: tuple[HalfPair, ...] = ()
    paired: bool = True  # False: one lost run each, whose partner there never was

    @property
    def a(self) -> int:
        """Replicates given up because of the run of group a."""
        return sum(half.failed_a for half in self.replicates)

    @property
    def b(self) -> int:
        """Replicates given up because of the run of group b."""
        return sum(half.failed_b for half in self.replicates)

    @property
    def cancelled(self) -> tuple[int, int]:
        """Runs of a and of b that did not fail themselves: they were cancelled, or are without a partner."""
        either = [half for half in self.replicates if self.paired and (half.failed_a or half.failed_b)]
        return sum(not half.failed_a for half in either), sum(not half.failed_b for half in either)

    def before(self, replicate: int) -> Lost:
        """Return the losses among the replicates below `replicate`."""
        earlier = tuple(half for half in self.replicates if half.replicate < replicate)
        return msgspec.structs.replace(self, replicates=earlier)
