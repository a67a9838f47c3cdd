"""A campaign as it was asked for, and as it was planned.

A campaign is one question to one or several experiments, its parts: several tasks, or the cells of a grid. All parts
have the same groups and seeds. They are planned before the first one starts, carried out one after the other, and
answered together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.reward_audit import RewardAudit
from esper_ab.launchers import Launcher
from esper_ab.plan.estimate import Estimate
from esper_ab.plan.plan import EarlierExperiment, Plan
from esper_ab.readers.joint_directory import digest_over_all
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.launcher import NOT_GIVEN, AskedLauncher
from esper_ab.settings.parts import Part
from esper_ab.settings.references import References
from esper_ab.trackers.settings import Tracking

if TYPE_CHECKING:
    from esper_ab.campaign.replicated import OriginalParts
    from esper_ab.code_trees.sealing import SealedCode
    from esper_ab.design.calibration_file import Calibration
    from esper_ab.design.design import Contrast
    from esper_ab.kept_runs.offers import Offers
    from esper_ab.settings.eval_episodes import EvaluationNoise
    from esper_ab.verdict.analysis_plan import AnalysisPlan


@dataclass(frozen=True, kw_only=True)
class PriorResults:
    """Results of `calibrate`, `growth rewards` and of an experiment launched again, which become part of a plan."""

    calibration: Calibration | None = None
    reward_audit: RewardAudit | None = None
    original: Plan | None = None  # of the experiment whose settings are launched again
    original_parts: OriginalParts | None = None  # likewise, of one over several parts

    @property
    def noise(self) -> EvaluationNoise | None:
        """The noise of evaluations in the calibration."""
        return self.calibration.noise if self.calibration else None


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What a command or a program asks for, after every check that does not need the machine."""

    parts: tuple[Part, ...]  # at least one
    output_dir: Path
    scores: str = ""  # WORST..TARGET, for all parts or by part; "": the ends of the declared ranges
    grid: tuple[str, ...] = ()  # KEY=V1,V2: the axes of the cells, if parts are cells
    launcher: AskedLauncher = NOT_GIVEN
    tracking: Tracking = field(default_factory=Tracking)  # results do not depend on trackers
    prior: PriorResults = field(default_factory=PriorResults)
    about: dict[str, Any] = field(default_factory=dict)  # the author's remarks, for [record] of experiment.toml
    generated_name: str = "{task}-{time}"  # of the directory, if the request has no name
    unsealed: tuple[Path, ...] = ()  # untracked files of the user's that are no part of a state of the code
    references: References | None = None  # the folder of kept runs, which are reused; None: every run is trained
    may_have_begun: bool = False  # whether the caller continues a campaign that has begun, instead of refusing it

    @property
    def name(self) -> str:
        """The requested name of the directory; "": to be generated."""
        return self.parts[0].asked.name


@dataclass(frozen=True, kw_only=True)
class PartPlan:
    """A planned part, with the machine for which it was planned."""

    name: str  # of the part, as users know it; "" for the only part
    asked: AskedExperiment
    machine: Machine
    plan: Plan
    cost: Estimate
    folder: Path  # of the part's experiment
    prior: PriorResults  # what the plan takes from earlier results
    code: SealedCode | None = (
        None  # the states of the code that its groups are trained with; None: the files as they are
    )
    offers: Offers | None = None  # kept runs that may be reused; None: there is no folder of them


@dataclass(frozen=True, kw_only=True)
class CampaignPlan:
    """A planned campaign. Nothing has been started or written yet."""

    campaign: Campaign
    directory: Path  # the folder of the only part, or the folder above those of all parts
    generated: str  # the generated name of the directory, without suffix; "": the user chose it
    parts: tuple[PartPlan, ...]
    launcher: Launcher
    over_all: AnalysisPlan | None = None  # the comparisons over several parts; None: the only part's own
    scores: dict[str, tuple[float, float]] = field(default_factory=dict)  # by part: worst and target outcome
    pooled_with: tuple[EarlierExperiment, ...] = ()  # by several parts together: the experiments that they replicate

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, which are the same in all parts."""
        return tuple(group.name for group in self.parts[0].plan.experiment.groups)

    @property
    def digest(self) -> str:
        """The digest of the plan: of all settings and, over several parts, also of the rule over them."""
        if self.over_all is not None:
            return digest_over_all(self.over_all.digest, [(part.name, part.plan.digest) for part in self.parts])
        return self.parts[0].plan.digest

    @property
    def comparisons(self) -> tuple[Contrast, ...]:
        """The comparisons that the answer is about."""
        if self.over_all is not None:
            return self.over_all.design.comparisons
        return self.parts[0].plan.design.comparisons
