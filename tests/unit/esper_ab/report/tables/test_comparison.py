import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from support.outcomes.compared_designs import compared, design, pairs_of, small

from esper_ab.report.tables.comparison import deciding_table, looks_table, overview_table
from esper_ab.verdict.verdict import Verdict


def _rows(comparison):
    return dict(deciding_table(comparison).rows)


def test_the_table_calls_equivalence_shown_only_if_it_is_claimed():
    """With few pairs both tests may reach their bounds, but a claim takes 15 pairs."""
    claimed = small()
    few = small(8)
    assert (claimed.verdict, few.verdict) == (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)
    assert _rows(claimed)["equivalence within 2 points"].startswith("shown: p ")
    assert few.equivalence.reached
    assert _rows(few)["equivalence within 2 points"].startswith("not claimed: p ")
    far = compared(design(6), pairs_of(60.0 + np.array([5.0, 6.0, 4.0, 5.5, 4.5, 5.2]), np.full(6, 60.0)))
    assert _rows(far)["equivalence within 2 points"].startswith("not shown: p ")


@given(st.floats(0.5, 6.0), st.integers(0, 2**32 - 1))
def test_rounding_never_moves_a_limit_across_0_or_the_margin(middle, rng_seed):
    d = middle + np.random.default_rng(rng_seed).standard_normal(6)
    comparison = compared(design(6), pairs_of(60.0 + d, np.full(6, 60.0)))
    assume(comparison.low is not None)
    (repeated,) = (row[7] for row in looks_table([comparison]).rows)
    overview = overview_table(comparison.question.design, [comparison, comparison]).rows[0][3]
    for cell in (_rows(comparison)[str(comparison.level)].split(" points")[0], repeated, overview):
        low, high = map(float, cell.split(" to "))
        for printed, value in ((low, comparison.low), (high, comparison.high)):
            for mark in (-2.0, 0.0, 2.0):
                assert abs(value - mark) < 1e-8 or (printed - mark) * (value - mark) > 0.0


def test_the_overview_mentions_simultaneous_intervals_only_if_they_exist():
    before = compared(design(6), pairs_of([75.0, 76.0], [70.0, 72.0]), complete=2)
    after = small()
    assert before.simultaneous[:2] == (None, None)
    for comparisons, expected in (([before, before], False), ([before, after], True), ([after], False)):
        assert bool(overview_table(before.question.design, comparisons).text_below) is expected
