"""What is decided before the first run, as the journal has it: structs without what makes them. Light."""

from __future__ import annotations

from esper_ab.contracts.children import RewardAudit
from esper_ab.contracts.messages import Lane, RunSpec
from esper_ab.contracts.records import Sha256
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.design.design import Design
from esper_ab.settings.experiment import Difference, ResolvedExperiment


class Block(Settings, frozen=True, kw_only=True):
    """The runs of one replicate: they train at the same time behind one barrier. The unit of inference."""

    replicate: int
    runs: tuple[RunSpec, ...]  # in start order; ref.device names the lane


class Plan(Settings, frozen=True, kw_only=True):
    """Everything decided before the first run; hashed, journalled, shown by --dry-run."""

    experiment: ResolvedExperiment
    digest: Sha256  # over the experiment, less its name and the order of its groups
    lanes: tuple[Lane, ...]
    idle_devices: tuple[str, ...]
    blocks: tuple[Block, ...]
    differences: tuple[Difference, ...]
    design: Design  # what is compared, by which rule
    kind: str  # of the task: names what reports and analyses have for it
    estimand: str  # one sentence
    notes: tuple[str, ...]  # what the user should know: several axes, time slicing, idle devices, too few seeds
    limits: int = 0  # how many of them, the first, limit what the answer may say
    step_s: float = 0.0  # estimated: a step (growth: a host epoch), or a trainer's point; 0 in older journals
    chance: float | None = None  # outcome of guessing a class; None: not known, or there are no classes
    run_sd: float | None = None  # how much runs of one group differ, from a calibration; None: unknown
    trainer: TrainerFacts | None = None  # what the rehearsal of a trainer of the user's own found
    reward_audit: RewardAudit | None = None  # of the groups' rewards, when the experiment includes one
    carries: bool = False  # whether the task's environments carry state from one reset to the next


class Extension(Settings, frozen=True, kw_only=True):
    """Blocks added to a plan, and the rule that holds from then on for the whole experiment."""

    design: Design
    blocks: tuple[Block, ...]
