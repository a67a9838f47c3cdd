"""The test, interval and level of a verdict, and the reason for an INCONCLUSIVE verdict."""

import msgspec
import numpy as np
from support.outcomes.compared_designs import (
    SMALL,
    compared,
    design,
    exploded,
    lost,
    one_sided,
    pairs_of,
    pairs_with_differences,
    small,
)

from esper_ab.design.design import Futility
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.verdict import Verdict

STOPS = Futility(power=0.8, nominal_p=(0.098, 0.0))
BASE = np.full(40, 70.0)
SIDES = np.arange(6) % 2


def test_only_differences_without_spread_are_degenerate():
    results = [compared(design(6, adjusted=True), one_sided(d)) for d in ([2.0] * 6, SMALL[:6])]
    assert [(result.effect, result.degenerate) for result in results] == [(None, True), (None, False)]


def test_the_adjusted_test_decides_if_it_is_declared():
    pairs = pairs_with_differences(4.5 + 4.0 * (-1.0) ** SIDES + SMALL[:6])
    adjusted_result = compared(design(6, adjusted=True), pairs)
    plain_result = compared(design(6), pairs)
    assert (adjusted_result.verdict, plain_result.verdict) == (Verdict.BETTER, Verdict.INCONCLUSIVE)
    assert adjusted_result.plain.p == plain_result.effect.p > 0.05


def test_the_headline_of_an_equivalence_prints_its_90_percent_interval():
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


def test_an_inconclusive_comparison_states_whether_the_margin_was_resolvable():
    d = np.array([1.5, -1.4, 1.0, -0.9, 2.2, -0.2, 0.9, -1.6, 1.8, 0.4, 0.7, -1.1, 1.9, -0.7, 1.3, 0.6])
    d = 2.4 * (d - d.mean()) / d.std(ddof=1)
    narrow_result = compared(design(16), pairs_with_differences(1.1 + d))
    wide_result = compared(design(16), pairs_with_differences(0.6 + 3.0 * d))
    assert (narrow_result.inconclusive, wide_result.inconclusive) == ("bounded", "uninformative")
    assert (
        f"Bounded: the interval excludes differences beyond {narrow_result.high:.2f} points." in narrow_result.sentence
    )
    assert narrow_result.smallest_resolvable <= 2.0 < min(narrow_result.high, wide_result.smallest_resolvable)
    assert compared(design(10), pairs_with_differences(d[:6])).inconclusive is None  # in progress
    assert small(findings=(exploded(),)).inconclusive is None  # not for want of pairs


def test_the_verdict_below_margin_prints_the_simultaneous_interval():
    result = compared(design(16, 3, margin=6.0), pairs_with_differences(5.0 + SMALL))
    low, high, level = result.simultaneous
    assert (low, high) == (result.last_look.simultaneous_low, result.last_look.simultaneous_high)
    assert f"smaller than the margin of 6 points ({level} {low:+.2f} to {high:+.2f})" in result.sentence
    assert str(level) == "95 % simultaneous interval"


def test_a_comparison_stopped_for_futility_is_inconclusive():
    result = compared(design(10, futility=STOPS), pairs_with_differences(SMALL[:6]))
    assert (result.verdict, result.inconclusive, result.progress.finished) == (Verdict.INCONCLUSIVE, "futile", True)
    low, high, level = result.futility
    assert max(-2.0, result.low) < low < high < min(2.0, result.high)
    assert f"Stopped for futility after 6 seeds (look 1 of 2): the {level} {low:+.2f} to" in result.sentence
    assert str(level) == "80.4 % futility interval"
    assert "more pairs" not in result.sentence
    assert (result.unseen, result.imputed) == (None, None)
    losses = lost((0, None, 60.0))
    rule = design(10, looks=(8, 10), futility=STOPS)
    pairs = pairs_of(70.0 + SMALL[1:10], BASE[:9], range(1, 10))
    result = compared(rule, pairs, lost=losses, complete=8)
    assert (result.inconclusive, result.imputed, result.used) == ("futile", None, 7)
    assert compared(rule, pairs, lost=losses, complete=8, findings=(exploded(),)).inconclusive is None


def test_a_finding_that_caps_equivalence_still_allows_other_claims():
    near_baseline = Finding(kind="baseline", weight="caps equivalence", groups=(), sentence="Both are at chance.")
    noted_finding = msgspec.structs.replace(near_baseline, weight="notes")
    for finding, verdicts in (
        (near_baseline, (Verdict.INCONCLUSIVE, Verdict.BETTER)),
        (noted_finding, (Verdict.EQUIVALENT, Verdict.BETTER_BELOW_MARGIN)),
    ):
        level = small(findings=(finding,))
        result_ahead = compared(design(16, margin=6.0), pairs_with_differences(4.5 + SMALL), findings=(finding,))
        assert (level.verdict, result_ahead.verdict) == verdicts
