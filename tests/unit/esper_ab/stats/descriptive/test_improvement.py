"""Wins, A12 and Cliff's delta against their definitions and the U of Mann and Whitney."""

import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from support.paired import columns, paired

from esper_ab.stats.descriptive.improvement import in_words, probability_of_improvement


def test_improvement_in_words():
    result = probability_of_improvement([3.0, 1.0, 2.0], [1.0, 2.0, 2.0])
    assert in_words("x", "y", result) == "x beats y in 1 of 3 pairs, 1 tied"


@given(paired)
def test_it_is_counted_and_cliffs_delta_is_by_its_definition(rows):
    a, b = columns(rows)
    found, apart = probability_of_improvement(a, b), np.subtract(a, b)
    assert (found.wins, found.ties, found.losses) == ((apart > 0).sum(), (apart == 0).sum(), (apart < 0).sum())
    above, below = (np.mean(op(np.subtract.outer(a, b), 0.0)) for op in (np.greater, np.less))
    assert found.cliffs_delta == pytest.approx(above - below, abs=1e-12)
    assert found.a12 == pytest.approx(stats.mannwhitneyu(a, b).statistic / len(rows) ** 2, abs=1e-12)
