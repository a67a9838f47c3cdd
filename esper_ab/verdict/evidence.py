"""All numbers of one comparison: statistics of the pairs, and the effect of the losses and the audit. Types only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import UnsetType

from esper_ab.contracts.wording import counted, n_pairs
from esper_ab.design.design import Design
from esper_ab.design.pairs_needed import PairsNeeded
from esper_ab.stats.adjusted_difference import AdjustedDifference, PriorVariance
from esper_ab.stats.equivalence import Equivalence
from esper_ab.stats.exact_signs import BACKED_BY_SIGNS
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_OPEN_ENDED_PAIRS, unseen_rate
from esper_ab.stats.pair import Data, Pairs, Samples, ends, outcomes
from esper_ab.stats.paired_difference import PairedDifference
from esper_ab.stats.proportions import Proportions
from esper_ab.stats.rounding import commonest, resolution, steady
from esper_ab.stats.text import p_text, percent
from esper_ab.verdict.collapse import Unseen
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.effect import Effect
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.guardrails import GuardrailResult
from esper_ab.verdict.imputation import Imputed
from esper_ab.verdict.inconclusive import Inconclusive
from esper_ab.verdict.level_words import names
from esper_ab.verdict.look import Look
from esper_ab.verdict.looks import ComparisonProgress
from esper_ab.verdict.not_worse import NotWorse
from esper_ab.verdict.question import Lost, Question
from esper_ab.verdict.sample import Sample, sample_of
from esper_ab.verdict.verdict import Verdict


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """Level and kind of an interval; an example as text is "95 % repeated interval"."""

    confidence: float
    kind: Literal["", "repeated ", "anytime-valid ", "simultaneous ", "futility "] = ""
    early: bool = False  # before the first look: not corrected for looking early
    any_shape: bool = False  # holds whatever the shapes of the groups' distributions

    def __str__(self) -> str:
        early_words = " (not corrected for looking early)" if self.early else ""
        shape_words = " for any shape" if self.any_shape else ""
        return f"{percent(self.confidence)} {self.kind}interval{shape_words}{early_words}"


# Limits of a difference in its unit, None if the data give none, and the level of the interval.
DifferenceInterval = tuple[float | None, float | None, Level]


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Statistics of a - b from the runs and the looks; None for a statistic that the data do not allow.

    The statistics cover the `used` pairs: those before the last look taken or, until the first look, all pairs. For
    unpaired runs, the statistics cover all runs, and counts are those of the smaller group.
    """

    question: Question
    progress: ComparisonProgress
    pairs: Pairs  # all, by replicate; none if the runs form no pairs
    samples: Samples | None  # the runs of both groups, if they form no pairs
    items: ComparedItems | None  # the scores on items below the pairs, if they count in the test
    used: int  # number of pairs used, counted from the first
    estimate: float | None  # of the deciding analysis; the plain mean while position effects cannot be separated
    effect: Effect | None  # adjusted as declared; None while position effects cannot be separated
    plain: PairedDifference | None  # the unadjusted paired t, at the comparison's level 1 - alpha
    descriptive: Mapping[str, Any]  # results of the descriptive statistics, by name
    equivalence: Equivalence | None  # at the last planned look, against its bound
    pairs_needed: PairsNeeded | None  # in this plan or, beyond it, at the price of an extension
    pairs_anew: PairsNeeded | None  # in a new plan whose bound is about the last one of this plan

    @property
    def design(self) -> Design:
        """The declared design, with the margin and outcome of this comparison."""
        return self.question.design

    @property
    def sample(self) -> Sample:
        """The size of the sample that limits a claim."""
        return sample_of(self.effect, len(self.data), self.items)

    @property
    def at_look(self) -> DifferenceInterval:
        """The interval of the last look that has a bound; before the first such look, an uncorrected interval."""
        question = self.question
        last_look = self.last_look
        if last_look is not None and (last_look.bound_p is not None or last_look.bound_e is not None):
            return last_look.low, last_look.high, self.level_at(last_look.alpha)
        is_early = not self.progress.finished and (len(self.design.looks) > 1 or question.open_ended)
        level = Level(confidence=1.0 - question.alpha, early=is_early)
        interval = None if self.effect is None else self.effect.interval(question.alpha)
        if interval is None:
            return None, None, level
        low, high = interval
        return low, high, level

    def level_at(self, alpha: float) -> Level:
        """Return the level of an interval at the bound of the last look."""
        last_look = self.progress.looks[-1]
        kind: Literal["", "repeated ", "anytime-valid "] = ""
        if last_look.bound_e is not None:
            kind = "anytime-valid "
        elif len(self.design.looks) > 1:
            kind = "repeated "
        return Level(confidence=1.0 - alpha, kind=kind, any_shape=last_look.for_any_shape)

    @property
    def level_alpha(self) -> float:
        """One minus the level of the interval at the last look, or before it of the uncorrected one."""
        return 1.0 - self.at_look[2].confidence

    @property
    def simultaneous(self) -> DifferenceInterval:
        """The simultaneous interval, which is the one at the initial share of alpha.

        At the last look, with confidence 1 - alpha, the simultaneous intervals of all comparisons contain their true
        differences.
        """
        last_look = self.last_look
        level = Level(confidence=1.0 - self.design.alpha, kind="simultaneous ")
        if last_look is None:
            return (None, None, level)
        if last_look.for_any_shape:
            level = msgspec.structs.replace(level, any_shape=True)
        return (last_look.simultaneous_low, last_look.simultaneous_high, level)

    @property
    def futility(self) -> DifferenceInterval:
        """The interval on which a stop for futility at the last look is based (two one-sided tests at the margin)."""
        last_look = self.last_look
        if last_look is None or last_look.futility_p is None:
            return None, None, Level(confidence=1.0, kind="futility ")
        error = last_look.futility_p if self.proportions else 2.0 * last_look.futility_p
        return last_look.futility_low, last_look.futility_high, Level(confidence=1.0 - error, kind="futility ")

    @property
    def data(self) -> Data:
        """All pairs, or all runs if they are unpaired."""
        return self.pairs if self.samples is None else self.samples

    @property
    def proportions(self) -> Proportions | None:
        """The effect if every outcome is 0 or 1, so that an exact test decides; else None."""
        return self.effect if isinstance(self.effect, Proportions) else None

    @property
    def test(self) -> str:
        """Name of the deciding test of a planned look."""
        if self.effect and self.effect.name:
            return self.effect.name
        test = "adjusted paired t" if self.design.adjusted else "paired t"
        return test if self.prior is None else f"moderated {test}"

    @property
    def prior(self) -> PriorVariance | None:
        """The prior of a moderated t; None if the test has the comparison's own variance."""
        if not isinstance(self.effect, AdjustedDifference) or isinstance(self.effect.prior, UnsetType):
            return None
        return self.effect.prior

    def counted(self, pairs: int) -> str:
        """Format a number of pairs, as in "8 pairs"; for unpaired runs, all of which count, as in "5 and 40 runs".

        Items of checkpoints are called what they are, as in "500 questions".
        """
        if self.samples is None:
            return counted(pairs, self.question.row) if self.about_checkpoints else n_pairs(pairs)
        return f"{len(self.samples.a)} and {len(self.samples.b)} {self.question.row}s"

    def worded(self, text: str) -> str:
        """Return the text, with "pairs" replaced by what a row is, unless runs form pairs; the text has no names."""
        if self.about_checkpoints:
            return text.replace("pair", self.question.row)
        if self.samples is not None:
            return text.replace("pairs", "runs")
        return text

    @property
    def about_checkpoints(self) -> bool:
        """True if the answer is about checkpoints, so that each pair is an item."""
        return self.question.level == "checkpoints"

    @property
    def degenerate(self) -> bool:
        """True if the deciding test cannot be applied to the differences used."""
        deciding_effect = self.plain if self.effect is None else self.effect
        return deciding_effect is not None and deciding_effect.degenerate

    @property
    def constant(self) -> str:
        """What all used pairs show if they have the same nonzero difference, but for rounding; else "".

        As in "new is 2.00 points above old in every pair".
        """
        plain_effect = self.plain
        if plain_effect is None or plain_effect.sd != 0.0 or self.proportions is not None:
            return ""
        sides = outcomes(self.pairs[: self.used])
        if abs(plain_effect.mean) <= resolution(*sides):
            return ""
        a, b = names(self.question.items, self.question.a, self.question.b)
        side = "above" if plain_effect.mean > 0.0 else "below"
        return f"{a} is {self.design.size(abs(plain_effect.mean))} {side} {b} in every {self.worded('pair')}"

    @property
    def unmoved(self) -> bool:
        """True if, in each group, all used pairs have the same outcome, so that the seeds seem to change nothing."""
        sides = outcomes(self.pairs[: self.used])
        return self.estimate is not None and all(side.size and steady(side, self.estimate) for side in sides)

    @property
    def stuck(self) -> tuple[int, int, float] | None:
        """The number of used runs with the commonest outcome, the number of used runs, and that outcome.

        None unless most of the used runs have that outcome.
        """
        runs = np.concatenate(outcomes(self.samples or self.pairs[: self.used]))
        if not runs.size:
            return None
        count, value = commonest(runs, resolution(runs))
        if 2 * count <= len(runs):
            return None
        return count, len(runs), value

    @property
    def small_from(self) -> str:
        """When a look could show that the difference is smaller than the margin, as in "15 pairs".

        "" if the last look already had enough pairs, or if its interval is not inside the margin.
        """
        look = self.last_look
        design = self.design
        if look is not None and look.non_inferiority is not None:
            return self._pairs_for_claim(look, look.non_inferiority)
        if look is None or look.equivalence_low is None or look.equivalence_high is None:
            return ""
        if not -design.margin < look.equivalence_low <= look.equivalence_high < design.margin:
            return ""
        least_pairs = design.least_small(look.replicates)
        if least_pairs is None and design.looks[-1] >= LEAST_EQUIVALENCE_PAIRS:
            return "the last planned look"
        least_pairs = least_pairs or LEAST_EQUIVALENCE_PAIRS
        return "" if look.pairs >= least_pairs else self.worded(n_pairs(least_pairs))

    def _pairs_for_claim(self, look: Look, not_worse: NotWorse) -> str:
        """Say how many pairs NOT WORSE takes if its limit excludes the margin; "" if it does not, or they suffice."""
        if not_worse.shown or not not_worse.excludes_margin(self.question.sign, self.design.margin):
            return ""
        least_pairs = LEAST_EQUIVALENCE_PAIRS if look.bound_e is None else LEAST_OPEN_ENDED_PAIRS
        return "" if look.pairs >= least_pairs else self.worded(n_pairs(least_pairs))

    @property
    def aim(self) -> str:
        """What further pairs are to show: "a difference of 2 points", "that b is not worse by 2 points or more"."""
        margin = self.design.margin_words
        if self.design.non_inferiority is None:
            return f"a difference of {margin}"
        return f"that {self.question.a} is not worse by {margin} or more"

    @property
    def lacking_signs(self) -> str:
        """Say that the t-test reached its bound but the exact sign-flip test, which so few pairs also need, did not.

        "" otherwise. Only the plain p is printed, so a design that adjusts for positions prints none.
        """
        look = self.last_look
        if look is None or look.p is None or look.bound_p is None or look.crossed or self.proportions is not None:
            return ""
        if look.pairs not in BACKED_BY_SIGNS or self.samples is not None or not 0.0 < look.p <= look.bound_p:
            return ""
        flip = self.descriptive["sign_flip"]
        p = ""
        if flip is not None and flip.p is not None and not self.design.adjusted:
            p = f"p {p_text(flip.p)}, "
        need_words = f"with {n_pairs(look.pairs)} a claim also needs the exact sign-flip test"
        return f"{need_words} ({p}{look.alpha:.3g} required)"

    @property
    def lacking_shape(self) -> bool:
        """True if the t-test reached its bound, but the interval that holds for any shape includes 0."""
        look = self.last_look
        if look is None or look.any_shape is None or look.crossed:
            return False
        low, high = look.any_shape
        return look.bound_reached and low <= 0.0 <= high

    @property
    def unseen_costs(self) -> tuple[float, float] | None:
        """By how much failures that struck no run could worsen the means of a and of b, each at least 0.

        The failures have the largest rate that may be unseen and the declared worst outcome, or a worse one that was
        seen. None if no worst outcome is declared, or no run is used.
        """
        worst_outcome = self.worst
        sides = outcomes(self.samples or self.pairs[: self.used])
        if worst_outcome is None or not self.used:
            return None
        rate = unseen_rate(self.used)
        cost_for_a, cost_for_b = (rate * abs(fsum(side) / len(side) - worst_outcome) for side in sides)
        return cost_for_a, cost_for_b

    @property
    def worst(self) -> float | None:
        """The declared worst outcome, or a worse one that was seen; None if none is declared."""
        declared_worst = self.design.worst
        if declared_worst is None:
            return None
        return self.design.outcome.worst((declared_worst, *ends(self.samples or self.pairs[: self.used])))

    @property
    def last_look(self) -> Look | None:
        """The newest look taken."""
        return self.progress.last


@dataclass(frozen=True, kw_only=True)
class Evidence(Numbers):
    """Everything known about one comparison, including the effect of the losses and the audit on its numbers.

    Every sentence about the comparison is derived from this evidence.
    """

    same_records: bool  # the records of both runs agree in every pair
    low: float | None  # interval behind the verdict: of the last look or, for EQUIVALENT, of its test
    high: float | None
    level: Level
    most_pairs: int | None  # most pairs that the plan can still reach; None: no maximum
    smallest_resolvable: float | None  # difference detected by `most_pairs` pairs with 80 % power at the observed SD
    lost: Lost
    imputed: Imputed | None  # None unless a decision could depend on losses
    limits_with_losses: tuple[float | None, float | None]  # of the repeated interval, whatever was lost; None: unknown
    findings: tuple[Finding, ...]  # of the audit; those that concern this comparison
    capped_by: tuple[str, ...]  # why the verdict is at most INCONCLUSIVE, one sentence each
    unseen: Unseen | None  # what a claim could not have seen; None if nothing is claimed
    inconclusive: Inconclusive | None  # its kind, at the end of the plan or of the comparison; else None
    guardrails: tuple[GuardrailResult, ...]  # in their order; () without any, or before the first look
    unaudited: Verdict  # the verdict of records and looks alone, before audit and losses
    verdict: Verdict

    @property
    def rules_out_margin(self) -> bool:
        """True if the interval lies inside the margin even with the failures of either group that may be unseen."""
        if self.level.any_shape:  # the interval counts with such failures
            return True
        if self.low is None or self.high is None or self.unseen_costs is None:
            return False
        cost_down, cost_up = self.unseen_costs
        if self.question.sign < 0.0:
            cost_down, cost_up = cost_up, cost_down
        return -self.design.margin < self.low - cost_down and self.high + cost_up < self.design.margin
