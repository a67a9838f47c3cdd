"""Two one-sided t-tests (Schuirmann 1987) against statsmodels and the interval of twice their level."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.weightstats import ttost_paired
from support.outcomes.paired_outcomes import columns, paired, varied

from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.equivalence import equivalence
from esper_ab.stats.rounding import degenerate


def compute_difference(a, b):
    return adjusted_difference(a, b, [(0, 1)] * len(a), 1)


@given(paired, st.floats(0.5, 30.0))
def test_equivalence_p_values_match_statsmodels(rows, margin):
    a, b = columns(rows)
    assume(varied(np.subtract(a, b)) and not degenerate(a, b))
    p, (_, p_lower, _), (_, p_upper, _) = ttost_paired(np.array(a), np.array(b), -margin, margin)
    result = equivalence(compute_difference(a, b), margin, 0.05)
    assert (result.p, result.p_lower, result.p_upper) == pytest.approx((p, p_lower, p_upper), rel=1e-9, abs=1e-12)


@given(paired, st.floats(0.5, 30.0), st.sampled_from((0.0076, 0.0455, 0.05)))
def test_equivalence_requires_an_interval_inside_the_margin(rows, margin, bound):
    a, b = columns(rows)
    assume(varied(np.subtract(a, b)) and not degenerate(a, b))
    effect = compute_difference(a, b)
    low, high = effect.interval(2.0 * bound)
    assume(min(abs(low + margin), abs(high - margin)) > 1e-9)
    assert equivalence(effect, margin, bound).reached == (-margin < low and high < margin)
    forward = equivalence(effect, margin, bound)
    swapped_result = equivalence(compute_difference(b, a), margin, bound)
    assert (forward.p_lower, forward.p_upper) == pytest.approx(
        (swapped_result.p_upper, swapped_result.p_lower), rel=1e-9
    )
    assert equivalence(compute_difference(a, a), margin, bound) is None
