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
    claimed_result = small()
    result_of_few = small(8)
    assert (claimed_result.verdict, result_of_few.verdict) == (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)
    assert _rows(claimed_result)["equivalence within 2 points"].startswith("shown: p ")
    assert result_of_few.equivalence.reached
    assert _rows(result_of_few)["equivalence within 2 points"].startswith("not claimed: p ")
    far_result = compared(design(6), pairs_of(60.0 + np.array([5.0, 6.0, 4.0, 5.5, 4.5, 5.2]), np.full(6, 60.0)))
    assert _rows(far_result)["equivalence within 2 points"].startswith("not shown: p ")


@given(st.floats(0.5, 6.0), st.integers(0, 2**32 - 1))
def test_rounding_never_moves_a_limit_across_0_or_the_margin(middle, rng_seed):
    d = middle + np.random.default_rng(rng_seed).standard_normal(6)
    comparison = compared(design(6), pairs_of(60.0 + d, np.full(6, 60.0)))
    assume(comparison.low is not None)
    (repeated_cell,) = (row[7] for row in looks_table([comparison]).rows)
    overview = overview_table(comparison.question.design, [comparison, comparison]).rows[0][3]
    for cell in (_rows(comparison)[str(comparison.level)].split(" points")[0], repeated_cell, overview):
        low, high = map(float, cell.split(" to "))
        for printed_limit, value in ((low, comparison.low), (high, comparison.high)):
            for mark in (-2.0, 0.0, 2.0):
                assert abs(value - mark) < 1e-8 or (printed_limit - mark) * (value - mark) > 0.0


def test_the_overview_mentions_simultaneous_intervals_only_if_they_exist():
    comparison_before = compared(design(6), pairs_of([75.0, 76.0], [70.0, 72.0]), complete=2)
    comparison_after = small()
    assert comparison_before.simultaneous[:2] == (None, None)
    for comparisons, expected in (
        ([comparison_before, comparison_before], False),
        ([comparison_before, comparison_after], True),
        ([comparison_after], False),
    ):
        assert bool(overview_table(comparison_before.question.design, comparisons).text_below) is expected
