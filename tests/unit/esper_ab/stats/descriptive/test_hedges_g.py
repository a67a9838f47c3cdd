"""Hedges' g by its definition."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.paired import accuracies

from esper_ab.stats.descriptive.hedges_g import hedges_g


@given(st.lists(accuracies, min_size=2, max_size=9), st.lists(accuracies, min_size=2, max_size=9))
def test_hedges_g_by_its_definition(a, b):
    g = hedges_g(a, b)
    assume(g is not None)
    pooled = math.sqrt((np.var(a, ddof=1) * (len(a) - 1) + np.var(b, ddof=1) * (len(b) - 1)) / (len(a) + len(b) - 2))
    df = len(a) + len(b) - 2
    j = math.gamma(df / 2) / (math.sqrt(df / 2) * math.gamma((df - 1) / 2))
    assert g == pytest.approx(j * (np.mean(a) - np.mean(b)) / pooled, rel=1e-9, abs=1e-12)


def test_there_is_no_g_without_variation_or_of_one_run_each():
    assert hedges_g([5.0, 5.0], [4.0, 4.0]) is None
    assert hedges_g([71.0], [70.0]) is None
