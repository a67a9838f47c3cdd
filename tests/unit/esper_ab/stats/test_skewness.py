import pytest
from scipy import stats

from esper_ab.stats.skewness import skewness


def test_skewness_equals_scipy():
    for values in ([1.0, 2.0, 9.0, 4.0], [5.0, -3.0, 2.0]):
        assert skewness(values) == pytest.approx(stats.skew(values))
    assert skewness([4.0, 4.0]) is None
