"""Verdicts and phrases, case by case, that no golden experiment or table covers."""

import numpy as np
import pytest
from simulation.sentences import contradictions
from support.outcomes.compared_designs import (
    BETTER_A,
    BETTER_B,
    SMALL,
    compared,
    design,
    exploded,
    lost,
    one_sided,
    open_ended,
    pairs_of,
    pairs_with_differences,
)

from esper_ab.design.design import Boundary, Futility, extended
from esper_ab.verdict.finding import Finding

ALIASED = Finding(kind="aliased", weight="blocks", groups=(), sentence="Device and group are aliased.")
STOPS = Futility(power=0.8, nominal_p=(0.098, 0.0))
CLEAR = pairs_of(BETTER_A, BETTER_B)
WIDE = np.array([6.0, -5.0, 4.0, -6.0, 5.0, -3.0])
TEN = pairs_of((*BETTER_A, *BETTER_A[:4]), (*BETTER_B, *BETTER_B[:4]))
SIDES = np.arange(6) % 2


def two_looks(**changes):
    """Return a design with lenient bounds and without early stop."""
    nominal_boundaries = (Boundary(open=1, alpha=0.05, nominal_p=(0.0455, 0.0455)),)
    return design(20, looks=(6, 10), boundaries=nominal_boundaries, early_stop=False, **changes)


def case(name, rule, pairs, verdict, *phrases, **changes):
    return pytest.param(rule, pairs, changes, verdict, phrases, id=name)


CASES = [
    case("small and below 0", design(16, margin=6.0), pairs_with_differences(-5.0 - SMALL), "WORSE, BELOW MARGIN"),
    case("not within the margin", design(16, margin=5.0), pairs_with_differences(5.0 + SMALL), "BETTER"),
    case(
        "crossed before 15 pairs",
        design(6, margin=6.0),
        CLEAR,
        "BETTER",
        "Calling it smaller than the margin takes 15 pairs.",
        ", within the margin of 6 points), in 6 of 6 pairs.",
    ),
    case(
        "small before 15 pairs",
        design(8),
        pairs_with_differences(SMALL[:8]),
        "INCONCLUSIVE",
        "but calling the difference smaller than the margin takes 15 pairs.",
    ),
    case("wider than the margin", design(16, margin=0.1), pairs_with_differences(SMALL), "INCONCLUSIVE"),
    case(
        "constant",
        design(6),
        pairs_with_differences([2.0] * 6),
        "INCONCLUSIVE",
        "shaped is 2.00 points above simplified in every pair, so no test of a mean applies; this is the answer for "
        "these seeds.",
        "Not decided: shaped is 2.00 points above simplified in every pair, so no test of a mean applies; this is",
        "Every outcome of shaped is 72.00 % and every one of simplified 70.00 %, though their records differ: look for",
    ),
    case(
        "constant beside the positions",
        design(6, adjusted=True),
        pairs_of(71.0 + 2.0 * SIDES, 70.0 + 2.0 * (1 - SIDES)),
        "INCONCLUSIVE",
        "apart from device and order nothing varies",
    ),
    case("constant on one side", design(6, adjusted=True), one_sided([2.0] * 6), "INCONCLUSIVE"),
    case(
        "aliased positions, adjusted",
        design(6, adjusted=True),
        one_sided(SMALL[:6]),
        "INCONCLUSIVE",
        "group and order cannot be separated",
    ),
    case(
        "aliased positions",
        design(10),
        one_sided(SMALL[:10]),
        "INCONCLUSIVE",
        "group and order cannot be separated in these pairs, so the look decides nothing.",
    ),
    case(
        "before the first look",
        design(10),
        CLEAR[:5],
        "NO INFERENCE",
        "NO INFERENCE so far (5 of 10 pairs)",
        "It can be decided after 6 seeds (look 1 of 2), not before",
        "not corrected for looking early",
        "5 of 10 planned pairs",
    ),
    case(
        "no early stop, first look",
        design(10, early_stop=False),
        TEN[:6],
        "BETTER",
        ", decided after 6 seeds (look 1 of 2).",
    ),
    case(
        "after a look",
        design(10),
        pairs_with_differences([4.9, -1.8, 3.8, -1.3, 4.3, 4.0, 98.0]),
        "INCONCLUSIVE",
        "At the last look, with 6 pairs: shaped - simplified = +2.32 points",
        "after 10 seeds (look 2 of 2)",
    ),
    case(
        "anytime and open",
        open_ended(),
        pairs_with_differences(WIDE),
        "INCONCLUSIVE",
        "INCONCLUSIVE so far (6 pairs)",
        "It can be decided after every further pair",
    ),
    case(
        "anytime and few",
        open_ended(),
        CLEAR[:3],
        "NO INFERENCE",
        "3 of 6 planned pairs are complete.",
        "It can be decided after every further pair from the 6th on.",
        planned=6,
    ),
    case(
        "equivalence withdrawn",
        extended(design(16, early_stop=False), 16),
        pairs_with_differences([*SMALL, 19.0, -18.0, 17.0, -19.0]),
        "INCONCLUSIVE",
        "Equivalence was shown after 16 seeds (look 1 of 1), but the last look no longer shows",
        "but the last look does not confirm what an earlier one decided.",
    ),
    case(
        "crossing withdrawn",
        two_looks(),
        pairs_with_differences([8.0, 8.5, 7.5, 8.2, 7.8, 8.1, -24.0, -26.0, -25.0, -23.0]),
        "INCONCLUSIVE",
        "The boundary was crossed after 6 seeds (look 1 of 2), but the last look",
    ),
    case(
        "few pairs at a look",
        design(10),
        pairs_of(BETTER_A, BETTER_B, range(2, 8)),
        "INCONCLUSIVE",
        "in 4 of 4 pairs, but a verdict needs at least 6 pairs.",
        complete=8,
    ),
    case(
        "no pair at a look",
        design(10),
        pairs_of(BETTER_A[:2], BETTER_B[:2], [6, 7]),
        "NO INFERENCE",
        "NO INFERENCE so far (2 of 10 pairs). At the last look no pair was complete. It",
        lost=lost(*((r, None, None) for r in range(6))),
    ),
    case(
        "three pairs",
        design(3),
        pairs_of([75.0, 80.0, 78.0], [70.0, 71.0, 70.7]),
        "NO INFERENCE",
        "NO INFERENCE (3 pairs). shaped - simplified = +7.10 points. If the differences",
        "Detecting 2 points with 80 % power takes about 7 more pairs",
    ),
    case(
        "three pairs at alpha 0.3",
        design(3, alpha=0.3),
        pairs_of([75.0, 80.0, 78.0], [70.0, 71.0, 70.7]),
        "NO INFERENCE",
        "possible with 3 pairs is p = 0.25. A verdict needs at least 6 pairs",
    ),
    case(
        "one pair after a calibration",
        design(1),
        pairs_with_differences([20.0]),
        "NO INFERENCE",
        "standard deviation of about 3.10 points (calibration)",
        run_sd=3.1,
    ),
    case("no pair", design(6), (), "NO INFERENCE", "0 of 6 planned pairs"),
    # The audit.
    case("blocked without a pair", design(6), (), "BLOCKED", findings=(ALIASED,)),
    case("finding on another group", design(6), CLEAR, "BETTER", findings=(exploded("other"),)),
    # Equal records, and different records with equal outcomes.
    case(
        "setting without an effect",
        design(6),
        pairs_with_differences([0.0] * 6),
        "IDENTICAL",
        "these runs never depended on the difference. Longer training may",
        same_records=True,
    ),
    case("one equal pair", design(1), pairs_with_differences([0.0]), "IDENTICAL", same_records=True),
    case("one pair of equal outcomes", design(1), pairs_with_differences([0.0]), "NO INFERENCE"),
    case(
        "one equal pair, capped",
        design(1),
        pairs_with_differences([0.0]),
        "NO INFERENCE",
        same_records=True,
        findings=(exploded(),),
    ),
    case(
        "equal records, capped",
        design(6),
        pairs_with_differences([0.0] * 6),
        "INCONCLUSIVE",
        same_records=True,
        findings=(exploded(),),
    ),
    case(
        "equal outcomes",
        design(6),
        pairs_of(BETTER_A, BETTER_A),
        "INCONCLUSIVE",
        "shaped and simplified have equal outcomes in every pair, though their records differ",
        "saturated",
    ),
    case(
        "one outcome",
        design(6),
        pairs_with_differences([0.0] * 6),
        "INCONCLUSIVE",
        "Every outcome of shaped and simplified is 70.00 %, though their records differ",
        "saturated",
    ),
    case(
        "one outcome in two pairs", design(2), pairs_with_differences([0.0] * 2), "NO INFERENCE", "is 70.00 %, though"
    ),
    case(
        "all but one run alike",
        design(6),
        pairs_with_differences([0.0, 0.0, 0.0, 0.4, 0.0, 0.0]),
        "INCONCLUSIVE",
        "5 of 6 pairs differ by the same amount and fewer than 6 by another: there is no test, no interval",
        "11 of 12 runs have the outcome 70.00 %, which leaves too little spread",
    ),
    # Regression tests.
    case("margin inside a wide interval", design(20), pairs_with_differences(np.linspace(-1.9, 3.0, 20)), "EQUIVALENT"),
    case(
        "futile at a first look",
        design(10, futility=STOPS),
        pairs_with_differences(np.linspace(-1.0, 1.0, 10)),
        "INCONCLUSIVE",
    ),
]


@pytest.mark.parametrize(("rule", "pairs", "changes", "verdict", "phrases"), CASES)
def test_each_kind_of_comparison_has_its_verdict_and_phrases(rule, pairs, changes, verdict, phrases):
    result = compared(rule, pairs, **changes)
    assert str(result.verdict) == verdict
    text = " ".join((result.sentence, str(result.level), result.headline, *result.caveats))
    assert [phrase for phrase in phrases if phrase not in text] == []
    assert list(contradictions(result)) == []
