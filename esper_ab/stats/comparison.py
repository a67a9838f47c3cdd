"""One group against another: every statistic of their pairs, the verdict and the sentence that says it.

Composes the other files of this package; computes nothing itself.
"""

from __future__ import annotations

import msgspec

from esper_ab.stats.hedges_g import hedges_g
from esper_ab.stats.mann_whitney import MannWhitney, mann_whitney
from esper_ab.stats.paired_difference import PairedDifference, paired_difference
from esper_ab.stats.pairs_needed import PairsNeeded, pairs_needed
from esper_ab.stats.probability_of_improvement import ProbabilityOfImprovement, probability_of_improvement
from esper_ab.stats.sign_flip import SignFlip, sign_flip
from esper_ab.stats.verdict import Verdict, decide, rule_sentence
from esper_ab.stats.wording import caveats, sentence

ALPHA = 0.05


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints of one replicate, in percent."""

    replicate: int
    a: float
    b: float


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared and what was planned, decided before the first run."""

    a: str
    b: str
    planned_pairs: int
    comparisons: int = 1  # of the experiment: they share the 5 % (Bonferroni)
    margin: float = 2.0  # points

    @property
    def alpha(self) -> float:
        return ALPHA / self.comparisons


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything said about a - b. A statistic is None where the data do not allow it."""

    question: Question
    pairs: tuple[Pair, ...]  # by replicate
    difference: PairedDifference | None
    sign_flip: SignFlip | None
    mann_whitney: MannWhitney | None
    improvement: ProbabilityOfImprovement | None
    hedges_g: float | None
    pairs_needed: PairsNeeded | None
    verdict: Verdict
    sentence: str
    rule: str
    caveats: tuple[str, ...]


def compare(question: Question, pairs: tuple[Pair, ...], same_records: bool) -> Comparison:
    """`pairs`: the complete ones, in any order; `same_records`: the digests of both runs agree in every pair."""
    pairs = tuple(sorted(pairs, key=lambda pair: pair.replicate))
    a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    difference = paired_difference(a, b, 1.0 - question.alpha) if pairs else None
    # One equal pair may be a coincidence; one pair of equal records is not.
    identical = bool(pairs) and a == b and (len(pairs) > 1 or same_records)
    verdict = decide(
        difference, identical=identical, complete=len(pairs) >= question.planned_pairs, alpha=question.alpha
    )
    several = len(pairs) > 1 and not identical
    flip = sign_flip(a, b) if several else None
    needed = None
    if several and difference is not None and difference.sd:
        needed = pairs_needed(difference.sd, difference.df, question.margin, question.alpha)
    return Comparison(
        question=question,
        pairs=pairs,
        difference=difference,
        sign_flip=flip,
        mann_whitney=mann_whitney(a, b) if several else None,
        improvement=probability_of_improvement(a, b) if len(pairs) > 1 else None,
        hedges_g=hedges_g(a, b) if several else None,
        pairs_needed=needed,
        verdict=verdict,
        sentence=sentence(verdict, question.a, question.b, difference, needed, same_records=same_records),
        rule=rule_sentence(question.alpha, question.comparisons),
        caveats=caveats(verdict, difference, flip, planned_pairs=question.planned_pairs, alpha=question.alpha),
    )
