"""The structs of a plan, as the journal stores them. Imports no libraries."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from esper_ab.contracts.records import Count, Index, Number, Seconds, Sha256
from esper_ab.contracts.reward_audit import RewardAudit
from esper_ab.contracts.settings import NonNegativeInt, Settings
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.contracts.worker_order import Lane, RunSpec
from esper_ab.design.design import Design
from esper_ab.settings.differences import Difference
from esper_ab.settings.experiment import ResolvedExperiment


class Block(Settings, frozen=True, kw_only=True):
    """The unit of inference: the runs of one seed, which train at the same time and share barriers."""

    replicate: Index
    runs: tuple[RunSpec, ...]  # in start order; ref.device names the lane


class EarlierExperiment(Settings, frozen=True, kw_only=True):
    """An experiment of the same plan on another rng seed, with which a replication is pooled; declared before it."""

    name: str
    digest: Sha256  # of its plan
    rng_seed: NonNegativeInt


class Plan(Settings, frozen=True, kw_only=True):
    """All decisions made before the first run. The plan is hashed, written to the journal and shown by --dry-run."""

    experiment: ResolvedExperiment
    digest: Sha256  # over the experiment, without its name and the order of its groups
    lanes: tuple[Lane, ...]
    idle_devices: tuple[str, ...]
    blocks: tuple[Block, ...]
    differences: tuple[Difference, ...]
    design: Design  # what is compared, and by which rule
    kind: str  # of the task; selects parts of reports and analyses
    estimand: str  # one sentence
    notes: tuple[str, ...]  # for the user: several axes, time slicing, idle devices, too few seeds, …
    limits: Count = 0  # number of leading notes that the user sees first
    step_s: Seconds = 0.0  # estimate for a step (growth: a host epoch) or a trainer's point; 0 in older journals
    chance: Number | None = None  # outcome of guessing a class; None: unknown, or there are no classes
    run_sd: Number | None = None  # standard deviation between runs of a group, from a calibration; None: unknown
    trainer: TrainerFacts | None = None  # results of rehearsing the user's trainer
    reward_audit: RewardAudit | None = None  # of the groups' rewards, if the experiment includes one
    carries: bool = False  # whether the task's environments carry state from one reset to the next
    # If it replicates an experiment: that one, and those with which that one is pooled. Left out of other plans.
    pooled_with: tuple[EarlierExperiment, ...] | UnsetType = UNSET

    @property
    def earlier(self) -> tuple[EarlierExperiment, ...]:
        """The experiments with which this one is pooled; () unless it replicates one."""
        return () if isinstance(self.pooled_with, UnsetType) else self.pooled_with

    @property
    def is_confounded(self) -> bool:
        """True if the runs form no pairs, or always have the same positions where these matter: nothing is decided."""
        return self.experiment.unpaired or (self.experiment.order == "fixed" and self.design.positions_matter)


class Extension(Settings, frozen=True, kw_only=True):
    """The blocks added to a plan, and the rule that applies to the whole extended experiment."""

    design: Design
    blocks: tuple[Block, ...]
