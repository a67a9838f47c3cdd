"""Verdicts: what an outcome allows to be said, and no more, where no golden experiment or table has it."""

import re

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulation.sentences import contradictions
from support.comparing import BETTER_A, BETTER_B, SMALL, compared, design, exploded, lost, open_ended, pairs_of, small

from esper_ab.design.design import Boundary, Futility, extended
from esper_ab.design.pairs_needed import pairs_needed
from esper_ab.stats.anytime_t import log_evidence
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Pair
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.question import HalfPair, Lost
from esper_ab.verdict.sample_size import extendable
from esper_ab.verdict.verdict import CLAIMS, DIFFERENT, Verdict

ALIASED = Finding(kind="aliased", weight="blocks", groups=(), sentence="Device and group are aliased.")
STOPS = Futility(power=0.8, nominal_p=(0.098, 0.0))
CLEAR = pairs_of(BETTER_A, BETTER_B)
BASE = np.full(40, 70.0)
WIDE = np.array([6.0, -5.0, 4.0, -6.0, 5.0, -3.0])
TEN = pairs_of((*BETTER_A, *BETTER_A[:4]), (*BETTER_B, *BETTER_B[:4]))
SIDES = np.arange(6) % 2


def above(d, base=70.0):
    """Pairs with these differences."""
    return pairs_of(base + np.array(d), np.full(len(d), base))


def one_sided(d):
    """The first group always starts first."""
    return tuple(Pair(replicate=r, a=70.0 + x, b=70.0, position_a=0, position_b=1) for r, x in enumerate(d))


def two_looks(**changes):
    """Lenient bounds, and no early stop."""
    nominal = (Boundary(open=1, alpha=0.05, nominal_p=(0.0455, 0.0455)),)
    return design(20, looks=(6, 10), boundaries=nominal, early_stop=False, **changes)


def case(name, rule, pairs, verdict, *said, **changes):
    return pytest.param(rule, pairs, changes, verdict, said, id=name)


CASES = [
    case("small and below 0", design(16, margin=6.0), above(-5.0 - SMALL), "WORSE, BELOW MARGIN"),
    case("not within the margin", design(16, margin=5.0), above(5.0 + SMALL), "BETTER"),
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
        above(SMALL[:8]),
        "INCONCLUSIVE",
        "but calling the difference smaller than the margin takes 15 pairs.",
    ),
    case("wider than the margin", design(16, margin=0.1), above(SMALL), "INCONCLUSIVE"),
    case(
        "constant",
        design(6),
        above([2.0] * 6),
        "INCONCLUSIVE",
        "every pair differs by +2.00 points, so no test of a mean applies; this is the answer for these seeds.",
        "Not decided: every pair differs by +2.00 points, so no test of a mean applies; this is the answer for these",
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
        above([4.9, -1.8, 3.8, -1.3, 4.3, 4.0, 98.0]),
        "INCONCLUSIVE",
        "At the last look, with 6 pairs: shaped - simplified = +2.32 points",
        "after 10 seeds (look 2 of 2)",
    ),
    case(
        "anytime and open",
        open_ended(),
        above(WIDE),
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
        above([*SMALL, 19.0, -18.0, 17.0, -19.0]),
        "INCONCLUSIVE",
        "Equivalence was shown after 16 seeds (look 1 of 1), but the last look no longer shows",
        "but the last look does not confirm what an earlier one decided.",
    ),
    case(
        "crossing withdrawn",
        two_looks(),
        above([8.0, 8.5, 7.5, 8.2, 7.8, 8.1, -24.0, -26.0, -25.0, -23.0]),
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
        above([20.0]),
        "NO INFERENCE",
        "standard deviation of about 3.10 points (calibration)",
        run_sd=3.1,
    ),
    case("no pair", design(6), (), "NO INFERENCE", "0 of 6 planned pairs"),
    # The audit.
    case("blocked without a pair", design(6), (), "BLOCKED", findings=(ALIASED,)),
    case("finding on another group", design(6), CLEAR, "BETTER", findings=(exploded("other"),)),
    # Equal records, and equal outcomes of records that differ.
    case(
        "setting without an effect",
        design(6),
        above([0.0] * 6),
        "IDENTICAL",
        "these runs never depended on the difference. Longer training may",
        same_records=True,
    ),
    case("one equal pair", design(1), above([0.0]), "IDENTICAL", same_records=True),
    case("one pair of equal outcomes", design(1), above([0.0]), "NO INFERENCE"),
    case("one equal pair, capped", design(1), above([0.0]), "NO INFERENCE", same_records=True, findings=(exploded(),)),
    case(
        "equal records, capped", design(6), above([0.0] * 6), "INCONCLUSIVE", same_records=True, findings=(exploded(),)
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
        above([0.0] * 6),
        "INCONCLUSIVE",
        "Every outcome of shaped and simplified is 70.00 %, though their records differ",
        "saturated",
    ),
    case("one outcome in two pairs", design(2), above([0.0] * 2), "NO INFERENCE", "is 70.00 %, though"),
    case(
        "all but one run alike",
        design(6),
        above([0.0, 0.0, 0.0, 0.4, 0.0, 0.0]),
        "INCONCLUSIVE",
        "5 of 6 pairs differ by the same amount and fewer than 6 by another: there is no test, no interval",
        "11 of 12 runs have the outcome 70.00 %, which leaves too little spread",
    ),
    # Without a bug that each had once.
    case("margin inside a wide interval", design(20), above(np.linspace(-1.9, 3.0, 20)), "EQUIVALENT"),
    case("futile at a first look", design(10, futility=STOPS), above(np.linspace(-1.0, 1.0, 10)), "INCONCLUSIVE"),
]


@pytest.mark.parametrize(("rule", "pairs", "changes", "verdict", "said"), CASES)
def test_the_verdict_and_what_is_said_with_it(rule, pairs, changes, verdict, said):
    result = compared(rule, pairs, **changes)
    assert str(result.verdict) == verdict
    text = " ".join((result.sentence, str(result.level), result.headline, *result.caveats))
    assert [words for words in said if words not in text] == []
    assert list(contradictions(result)) == []


def test_without_an_adjusted_test_only_differences_without_spread_are_degenerate():
    results = [compared(design(6, adjusted=True), one_sided(d)) for d in ([2.0] * 6, SMALL[:6])]
    assert [(result.effect, result.degenerate) for result in results] == [(None, True), (None, False)]


def test_the_declared_adjustment_decides_and_the_plain_test_stands_beside_it():
    pairs = above(4.5 + 4.0 * (-1.0) ** SIDES + SMALL[:6])
    adjusted = compared(design(6, adjusted=True), pairs)
    plain = compared(design(6), pairs)
    assert (adjusted.verdict, plain.verdict) == (Verdict.BETTER, Verdict.INCONCLUSIVE)
    assert adjusted.plain.p == plain.effect.p > 0.05


def test_an_equivalence_prints_the_interval_that_it_rests_on():
    """Two one-sided tests at 5 % are the 90 % interval."""
    result = small(rule=design(16, margin=3.0))
    look = result.last_look
    assert (result.low, result.high) == (look.equivalence_low, look.equivalence_high)
    assert str(result.level) == "90 % interval"
    assert look.low < result.low < result.high < look.high
    assert "90 % interval" in result.sentence
    assert "(90 % interval 0." in result.headline
    assert str(small(rule=design(16, 3)).level) == "96.7 % interval"
    assert str(small(findings=(exploded(),)).level) == "95 % interval"


def test_inconclusive_says_whether_the_margin_was_within_reach():
    d = np.array([1.5, -1.4, 1.0, -0.9, 2.2, -0.2, 0.9, -1.6, 1.8, 0.4, 0.7, -1.1, 1.9, -0.7, 1.3, 0.6])
    d = 2.4 * (d - d.mean()) / d.std(ddof=1)
    bounded = compared(design(16), above(1.1 + d))
    wide = compared(design(16), above(0.6 + 3.0 * d))
    assert (bounded.inconclusive, wide.inconclusive) == ("bounded", "uninformative")
    assert f"Bounded: the interval excludes differences beyond {bounded.high:.2f} points." in bounded.sentence
    assert bounded.smallest_resolvable <= 2.0 < min(bounded.high, wide.smallest_resolvable)
    assert compared(design(10), above(d[:6])).inconclusive is None  # in progress
    assert small(findings=(exploded(),)).inconclusive is None  # not for want of pairs


def test_below_margin_rests_on_the_simultaneous_interval_and_prints_it():
    result = compared(design(16, 3, margin=6.0), above(5.0 + SMALL))
    low, high, level = result.simultaneous
    assert (low, high) == (result.last_look.simultaneous_low, result.last_look.simultaneous_high)
    assert f"smaller than the margin of 6 points ({level} {low:+.2f} to {high:+.2f})" in result.sentence
    assert str(level) == "95 % simultaneous interval"


def test_what_was_stopped_for_futility_says_so_everywhere_and_claims_nothing():
    result = compared(design(10, futility=STOPS), above(SMALL[:6]))
    assert (result.verdict, result.inconclusive, result.course.finished) == (Verdict.INCONCLUSIVE, "futile", True)
    low, high, level = result.futility
    assert max(-2.0, result.low) < low < high < min(2.0, result.high)
    assert f"Stopped for futility after 6 seeds (look 1 of 2): the {level} {low:+.2f} to" in result.sentence
    assert str(level) == "80.4 % futility interval"
    assert "more pairs" not in result.sentence
    assert (result.unseen, result.imputed) == (None, None)
    gone = lost((0, None, 60.0))
    rule = design(10, looks=(8, 10), futility=STOPS)
    pairs = pairs_of(70.0 + SMALL[1:10], BASE[:9], range(1, 10))
    result = compared(rule, pairs, lost=gone, complete=8)
    assert (result.inconclusive, result.imputed, result.used) == ("futile", None, 7)
    assert compared(rule, pairs, lost=gone, complete=8, findings=(exploded(),)).inconclusive is None


# How many more pairs a comparison is said to need.


def test_what_the_budget_cannot_resolve_is_said_from_the_spread_never_from_the_difference():
    low, high = (compared(design(6), above(WIDE + shift)) for shift in (0.0, 2.0))
    assert low.pairs_needed == high.pairs_needed
    for result in (low, high):
        needed = result.pairs_needed
        anew = result.pairs_anew
        price = f"an extension requires p <= {needed.alpha:.2g}), or about {anew.pairs} in a new plan (80 % range"
        assert price in result.sentence
        assert f"about {needed.pairs - 6} more pairs" in result.sentence
        least = f"the smallest difference it can detect is {result.smallest_resolvable:.2f} points"
        assert least in result.sentence
    assert low.smallest_resolvable == pytest.approx(high.smallest_resolvable)
    assert (low.pairs_anew.alpha, low.most_pairs) == (0.05, 6)
    gone = lost((6, None, 70.0), (7, None, 70.0))
    assert compared(design(16), CLEAR, lost=gone).most_pairs == 14


def test_more_pairs_are_needed_when_it_is_looked_after_every_pair():
    open_ = compared(open_ended(), above(WIDE))
    planned = compared(design(6), above(WIDE))
    assert open_.smallest_resolvable is None
    fixed = pairs_needed(float(np.std(WIDE, ddof=1)), 5, 2.0, 0.05)
    assert fixed.pairs < open_.pairs_needed.pairs < planned.pairs_needed.pairs
    for found, evidence in ((open_, 20.0), (planned, 100.0)):  # an extension asks for five times as much
        pairs = found.pairs_needed.pairs
        t = stats.t.isf(found.pairs_needed.alpha / 2.0, pairs - 1)
        assert log_evidence(t, pairs - 1, pairs) == pytest.approx(np.log(evidence))


def test_what_a_look_closed_is_not_said_to_take_an_extension():
    """Crossed at the first look, withdrawn at the last: `resume --seeds` has nothing left to decide."""
    result = compared(design(10, early_stop=False), above([3.0, 3.4, 2.8, 3.1, 3.3, 2.9, -6.0, -4.0, -7.0, -2.0]))
    assert (result.course.decision, extendable(result.question, result.course)) == ("crossed", False)
    assert "resume" not in result.sentence
    assert " more pairs" in result.sentence


# Rules that hold for all inputs.

outcomes = st.floats(40.0, 90.0).map(lambda x: round(x, 1))
rows = st.builds(
    lambda shift, items: [(x, round(x - shift - e, 1)) for x, e in items],
    st.sampled_from((-6.0, -1.0, 0.0, 0.5, 5.0)),
    st.lists(st.tuples(outcomes, st.integers(-30, 30).map(lambda tenths: tenths / 10.0)), min_size=1, max_size=10),
)
rules = st.builds(
    design,
    st.sampled_from((3, 6, 8, 10)),
    adjusted=st.booleans(),
    early_stop=st.booleans(),
    margin=st.sampled_from((1.0, 4.0, 20.0)),
)
MIRRORED = {
    Verdict.BETTER: Verdict.WORSE,
    Verdict.WORSE: Verdict.BETTER,
    Verdict.BETTER_BELOW_MARGIN: Verdict.WORSE_BELOW_MARGIN,
    Verdict.WORSE_BELOW_MARGIN: Verdict.BETTER_BELOW_MARGIN,
}


def swapped(pair: Pair | HalfPair) -> Pair | HalfPair:
    return msgspec.structs.replace(
        pair,
        a=pair.b,
        b=pair.a,
        position_a=pair.position_b,
        position_b=pair.position_a,
        **({"failed_a": pair.failed_b, "failed_b": pair.failed_a} if isinstance(pair, HalfPair) else {}),
    )


@settings(max_examples=60)
@given(rows, st.one_of(rules, st.just(open_ended())), st.one_of(st.none(), outcomes))
def test_swapping_the_groups_flips_every_sign_every_verdict_and_the_words(found, rule, survivor):
    pairs = pairs_of(*zip(*found, strict=True))
    gone = lost() if survivor is None else lost((len(pairs), None, survivor))
    there = compared(rule, pairs, lost=gone)
    turned_losses = Lost(replicates=tuple(map(swapped, gone.replicates)))
    back = compared(rule, tuple(map(swapped, pairs)), lost=turned_losses, a="simplified", b="shaped")
    assert back.verdict is MIRRORED.get(there.verdict, there.verdict)
    assert back.estimate == pytest.approx(-there.estimate, abs=1e-9)
    assert (back.low is None) == (there.low is None)
    if there.low is not None:
        assert (back.low, back.high) == pytest.approx((-there.high, -there.low), rel=1e-9, abs=1e-9)
    assert there.headline.count(". ") == 0  # one sentence
    assert str(there.verdict) not in there.headline
    if there.verdict in DIFFERENT:
        words = {"shaped": "simplified", "simplified": "shaped", "better": "worse", "worse": "better"}
        assert re.sub("|".join(words), lambda found: words[found.group()], there.headline) == back.headline
    assert (back.imputed is None) == (there.imputed is None)
    if there.imputed is not None:
        assert back.imputed.survives == there.imputed.survives
    if (iqm := there.descriptive["iqm"]) is not None:
        turned = back.descriptive["iqm"]
        assert (turned.low, turned.high) == pytest.approx((-iqm.high, -iqm.low), abs=1e-9)


@settings(max_examples=60)
@given(rows, rules, st.randoms(use_true_random=False))
def test_order_never_matters_no_claim_below_six_pairs_and_an_audit_never_makes_a_verdict_stronger(found, rule, random):
    listed = list(pairs_of(*zip(*found, strict=True)))
    result = compared(rule, tuple(listed))
    random.shuffle(listed)
    assert compared(rule, tuple(listed)) == result
    if len(found) < LEAST_PAIRS:
        assert result.verdict not in CLAIMS
    if result.verdict in (Verdict.BETTER, Verdict.WORSE) and result.used == result.course.decided_at:
        assert result.last_look.p <= result.last_look.bound_p
    text = " ".join((result.sentence, result.rule, str(result.level), *result.caveats)).lower()
    for word in ("winner", "none", "nan", "inf ", "  ", "..", "no interval,"):
        assert word not in text
    capped = compared(rule, tuple(listed), findings=(exploded("simplified"),))
    assert capped.unaudited is result.unaudited
    assert capped.verdict is (Verdict.INCONCLUSIVE if result.verdict in CLAIMS else result.verdict)
