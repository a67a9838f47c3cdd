"""Cohen's d against its definition and against numbers computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.outcomes.paired_outcomes import accuracies

from esper_ab.stats.descriptive.cohens_d import cohens_d

runs = st.lists(accuracies, min_size=2, max_size=9)


@given(runs, runs)
def test_cohens_d_divides_the_difference_by_the_pooled_standard_deviation(a, b):
    d = cohens_d(a, b)
    assume(d is not None)
    pooled_sd = math.sqrt((np.var(a, ddof=1) * (len(a) - 1) + np.var(b, ddof=1) * (len(b) - 1)) / (len(a) + len(b) - 2))
    assert d == pytest.approx((np.mean(a) - np.mean(b)) / pooled_sd, rel=1e-9, abs=1e-12)


def test_cohens_d_equals_a_value_computed_by_hand():
    """Means 4 and 2, variances 4 and 1: the pooled SD is the root of 2.5."""
    assert cohens_d([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx(2.0 / math.sqrt(2.5))


def test_cohens_d_is_undefined_without_variation_or_for_single_runs():
    assert cohens_d([5.0, 5.0], [4.0, 4.0]) is None
    assert cohens_d([71.0], [70.0]) is None
