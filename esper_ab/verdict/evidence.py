"""Every number of one comparison, in one place. Types only."""

from __future__ import annotations

import msgspec

from esper_ab.design.pairs_needed import PairsNeeded
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.bootstrap import ImprovementInterval, IQMDifference
from esper_ab.stats.equivalence import Equivalence
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.mann_whitney import MannWhitney
from esper_ab.stats.pair import Pair
from esper_ab.stats.pair_correlation import PairCorrelation
from esper_ab.stats.paired_difference import PairedDifference
from esper_ab.stats.probability_of_improvement import ProbabilityOfImprovement
from esper_ab.stats.sign_flip import SignFlip
from esper_ab.stats.signed_rank import SignedRank
from esper_ab.verdict.decision import Verdict
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.imputation import Imputed
from esper_ab.verdict.looks import Course, Look
from esper_ab.verdict.question import Lost, Question


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a - b, in points. A statistic is None where the data do not allow it.

    Statistics are of the `used` pairs: those before the last look taken, all pairs while none was taken.
    """

    question: Question
    course: Course
    pairs: tuple[Pair, ...]  # all, by replicate
    used: int  # pairs, the first of them
    same_records: bool  # the records of both runs agree in every pair
    estimate: float | None  # of the deciding analysis; the plain mean while positions cannot be told apart
    low: float | None  # repeated interval at the last look, of EQUIVALENT that of its test; before any, uncorrected
    high: float | None
    level: str  # what [low, high] is: "95 % repeated interval"
    effect: AdjustedDifference | None  # adjusted as declared; None where positions cannot be told apart
    plain: PairedDifference | None  # not adjusted, at the level 1 - alpha of the comparison
    rank: SignedRank | None
    sign_flip: SignFlip | None
    mann_whitney: MannWhitney | None
    improvement: ProbabilityOfImprovement | None
    improvement_interval: ImprovementInterval | None
    hedges_g: float | None
    correlation: PairCorrelation | None
    iqm: IQMDifference | None
    equivalence: Equivalence | None  # at the last planned look, against its bound; of the t-test only
    pairs_needed: PairsNeeded | None  # in this plan; beyond it at the price of an extension
    pairs_anew: PairsNeeded | None  # in a new plan with about the last bound of this one
    most_pairs: int | None  # that the plan can still reach; None: no maximum
    smallest_resolvable: float | None  # points, with `most_pairs` pairs and 80 % power at the observed SD
    lost: Lost
    imputed: Imputed | None  # only where a decision could hang on losses
    findings: tuple[Finding, ...]  # of the audit, those that touch this comparison
    capped_by: tuple[str, ...]  # why at most INCONCLUSIVE, one sentence each
    unaudited: Verdict  # what records and looks say before audit and losses
    verdict: Verdict

    @property
    def degenerate(self) -> bool:
        """Whether the differences used are no sample that the deciding test may be applied to."""
        if self.question.design.test == "rank" or self.effect is None:
            return self.plain is not None and self.plain.degenerate
        return self.effect.degenerate

    @property
    def too_few_for_equivalence(self) -> bool:
        """Whether only the number of pairs forbids to say that the difference is smaller than the margin."""
        look, margin = self.last_look, self.question.design.margin
        if look is None or look.pairs >= LEAST_EQUIVALENCE_PAIRS:
            return False
        low, high = look.equivalence_low, look.equivalence_high
        return low is not None and high is not None and -margin < low and high < margin

    @property
    def mean_contradicts(self) -> bool:
        """Whether ranks would decide at the last look, were it not for the mean difference."""
        look, plain, margin = self.last_look, self.plain, self.question.design.margin
        if self.question.design.test != "rank" or look is None or plain is None or look.low is None:
            return False
        if look.low > 0.0 or (look.high is not None and look.high < 0.0):
            return plain.mean * look.low <= 0.0
        low, high = look.equivalence_low, look.equivalence_high
        inside = low is not None and high is not None and -margin < low and high < margin
        return inside and abs(plain.mean) >= margin

    @property
    def floored(self) -> tuple[str, ...]:
        """Why the audit lets nothing be called smaller than the margin; empty where it does."""
        return tuple(finding.sentence for finding in self.findings if finding.weight == "caps equivalence")

    @property
    def last_look(self) -> Look | None:
        """The newest look taken."""
        return self.course.looks[-1] if self.course.looks else None
