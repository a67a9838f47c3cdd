import pytest
from scipy.optimize import minimize_scalar

from esper_ab.stats.score_test import score_difference


@pytest.mark.parametrize(("n", "m"), [(9, 9), (7, 12)])
def test_the_score_interval_excludes_zero_exactly_if_the_test_rejects(n, m):
    for p in (0.003, 0.05):
        for x in range(n + 1):
            for y in range(m + 1):
                difference = score_difference(x, n, y, m, 1.0)
                low, high = difference.interval(p)
                assert -1.0 <= low <= difference.mean <= high <= 1.0
                assert (low > 0.0 or high < 0.0) == (difference.p <= p)


def likelihood_ratio_share(x, n, y, m, difference):
    """The most likely share of b if that of a is larger by `difference`, found numerically."""
    from math import log

    def cost(share):
        terms = ((x, share + difference), (n - x, 1 - share - difference), (y, share), (m - y, 1 - share))
        return -sum(count * log(chance) for count, chance in terms if count)

    low = max(0.0, -difference) + 1e-9
    return minimize_scalar(cost, bounds=(low, min(1.0, 1.0 - difference) - 1e-9), method="bounded").x


@pytest.mark.parametrize(("x", "n", "y", "m"), [(13, 38, 32, 38), (5, 10, 2, 12), (40, 50, 20, 25)])
def test_the_score_at_each_limit_equals_z(x, n, y, m):
    difference = score_difference(x, n, y, m, 1.0)
    for limit in difference.interval(0.05):
        b = likelihood_ratio_share(x, n, y, m, limit)
        a = b + limit
        error = (a * (1 - a) / n + b * (1 - b) / m) ** 0.5
        assert abs(difference.mean - limit) / error == pytest.approx(1.959964, abs=1e-4)


def test_the_interval_of_equal_certain_outcomes_has_a_positive_width():
    low, high = score_difference(20, 20, 20, 20, 1.0).interval(0.05)
    assert low == pytest.approx(-high)
    assert 0.1 < high < 0.2
