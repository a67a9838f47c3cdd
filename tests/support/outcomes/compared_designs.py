"""Make designs with fixed boundaries, and compare two lists of outcomes by such a design."""

from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.design.design import Boundary, Contrast, Design
from esper_ab.stats.pair import Data, Pair, Pairs, Samples
from esper_ab.verdict.comparison import Comparison, compare
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.looks import progress_after
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import HalfPair, Lost, Question
from workers.kinds.growth.measures import MEASURES

# nominal p of the looks, t-calibrated: 0.05 at once; 6, 10 of 10 (docs/internals/verdict-rules.md)
NOMINAL = {6: (0.05,), 8: (0.05,), 10: (0.0076, 0.0455), 16: (0.05,), 20: (0.05,)}
A = "shaped"
B = "simplified"


def design(replicates: int, comparisons: int = 1, **changes: object) -> Design:
    """Return a design with one look, or with looks at 6 and 10 if it has 10 replicates.

    With several comparisons every nominal p is divided by their number.
    """
    contrasts = tuple(Contrast(a=A, b=B if index == 0 else f"other{index}") for index in range(comparisons))
    boundaries = tuple(
        Boundary(open=n, alpha=0.05 / n, nominal_p=tuple(p / n for p in NOMINAL[replicates]))
        for n in range(comparisons, 0, -1)
        if replicates in NOMINAL
    )
    default_design = Design(
        outcome_over="evaluation",
        test="t",
        alpha=0.05,
        margin=2.0,
        measures=MEASURES,
        comparisons=contrasts,
        positions=2,
        adjusted=False,
        early_stop=True,
        looks=(6, 10) if replicates == 10 else (replicates,),
        boundaries=boundaries,
        anytime_after=None,
        evidence=20.0,
    )
    return msgspec.structs.replace(default_design, **changes)


def open_ended(**changes: object) -> Design:
    """Return a design with an anytime-valid t-test after every pair."""
    return design(6, looks=(), boundaries=(), anytime_after=0, **changes)


def pairs_of(a: Sequence[float], b: Sequence[float], replicates: Sequence[int] | None = None) -> Pairs:
    """Return pairs whose positions alternate with the replicate, as in a counterbalanced plan."""
    numbers = range(len(a)) if replicates is None else replicates
    return Pairs.of(
        Pair(replicate=r, a=float(x), b=float(y), position_a=r % 2, position_b=1 - r % 2)
        for r, x, y in zip(numbers, a, b, strict=True)
    )


def compared(
    rule: Design,
    pairs: Data | Sequence[Pair],
    *,
    lost: Lost | None = None,
    complete: int | None = None,
    **changes: object,
) -> Comparison:
    """Compare a with b, in the first comparison of `rule`.

    `complete`: the number of complete replicates; by default all pairs and lost replicates. `changes`: `same_records`,
    `findings`, and fields of Question.
    """
    data = pairs if isinstance(pairs, Pairs | Samples) else Pairs.of(pairs)
    lost = lost or Lost()
    if complete is None:
        complete = len(data) + len(lost.replicates)
    same_records = changes.pop("same_records", False)
    findings = changes.pop("findings", ())
    question = Question(a=A, b=B, design=rule, planned=max(rule.looks, default=complete), scope="task t, 5 steps")
    progress = progress_after(rule, {rule.comparisons[0]: data}, complete)[rule.comparisons[0]]
    return compare(
        msgspec.structs.replace(question, **changes),
        Pairing(pairs=data, lost=lost),
        progress,
        same_records=same_records,
        findings=findings,
    )


def exploded(*groups):
    return Finding(kind="ratio", weight="caps", groups=groups, sentence="The policy's ratios exploded.")


def lost(*halves):
    """Return lost replicates from (replicate, a, b), in which None is a failed run."""
    return Lost(
        replicates=tuple(
            HalfPair(
                replicate=r, a=a, b=b, failed_a=a is None, failed_b=b is None, position_a=r % 2, position_b=1 - r % 2
            )
            for r, a, b in halves
        )
    )


BETTER_A = (75.0, 76.2, 74.1, 75.7, 76.0, 74.4)
BETTER_B = (70.1, 72.0, 70.3, 70.0, 71.7, 70.4)
SMALL = np.array([0.3, -0.2, 0.1, -0.4, 0.2, -0.1, 0.05, -0.25, 0.35, -0.15, 0.25, -0.3, 0.15, -0.05, 0.4, -0.35])


def small(count=16, rule=None, **changes):
    """Compare groups with small differences of both signs."""
    return compared(rule or design(count), pairs_of(70.0 + SMALL[:count], np.full(count, 70.0)), **changes)


def pairs_with_differences(d, base=70.0):
    """Return pairs with these differences."""
    return pairs_of(base + np.array(d), np.full(len(d), base))


def one_sided(d):
    """Return pairs in which the first group always starts first."""
    return Pairs.of(Pair(replicate=r, a=70.0 + x, b=70.0, position_a=0, position_b=1) for r, x in enumerate(d))
