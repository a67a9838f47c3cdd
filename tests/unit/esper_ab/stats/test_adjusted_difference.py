"""The adjusted difference against scipy and statsmodels, and rules that hold for all inputs."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from support.outcomes.paired_outcomes import accuracies

from esper_ab.stats.adjusted_difference import adjusted_difference


@st.composite
def experiments(draw):
    """Draw (a, b, sides, positions) with sides in any order that a block allows; one position: the paired t."""
    n_positions = draw(st.integers(1, 4))
    n = draw(st.integers(n_positions + 1, 14))
    values = st.lists(accuracies, min_size=n, max_size=n)
    position = st.integers(0, max(n_positions, 2) - 1)
    sides = draw(st.lists(st.tuples(position, position).filter(lambda s: s[0] != s[1]), min_size=n, max_size=n))
    return draw(values), draw(values), sides, n_positions


def approx(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def build_design_matrix(sides, positions):
    """Return the design matrix: an intercept and, per position, the indicator of a's minus that of b's."""
    indicator = np.eye(max(positions, 2))[:, :positions]
    columns = np.array([indicator[a] - indicator[b] for a, b in sides])[:, 1:]
    return np.column_stack([np.ones(len(sides)), columns])


@given(experiments())
def test_the_adjusted_difference_equals_least_squares_of_statsmodels(experiment):
    a, b, sides, positions = experiment
    matrix = build_design_matrix(sides, positions)
    assume(np.linalg.matrix_rank(matrix) == positions)
    difference = adjusted_difference(a, b, sides, positions)
    assume(difference is not None and difference.se is not None and difference.se > 1e-6)
    fit = sm.OLS(np.array(a) - np.array(b), matrix).fit()
    low, high = fit.conf_int(0.03)[0]
    assert (difference.df, difference.pairs) == (fit.df_resid, len(a))
    assert difference.information == approx(fit.mse_resid / fit.bse[0] ** 2)
    assert (difference.mean, difference.se, difference.t, difference.p) == tuple(
        approx(value) for value in (fit.params[0], fit.bse[0], fit.tvalues[0], fit.pvalues[0])
    )
    assert difference.sd == approx(math.sqrt(fit.mse_resid))
    assert difference.interval(0.03) == (approx(low), approx(high))
    assert [(e.position, e.mean) for e in difference.positions] == [
        (k, approx(fit.params[k])) for k in range(1, positions)
    ]
    for effect, limits in zip(difference.positions, fit.conf_int(0.05)[1:], strict=True):
        assert (effect.low, effect.high) == (approx(limits[0]), approx(limits[1]))


def test_groups_at_fixed_positions_have_no_adjusted_difference():
    a = [1.0, 2.0, 4.0, 3.0]
    b = [0.0, 0.5, 1.0, 2.0]
    assert adjusted_difference(a, b, [(0, 1)] * 4, 2) is None
    assert adjusted_difference(a, b, [(0, 1)] * 3 + [(1, 0)], 2) is not None
    assert adjusted_difference(a, b, [(0, 1)] * 4, 1) is not None
    # a in 0, b in 1 or 2: the group effect cannot be separated from either position
    assert adjusted_difference(a, b, [(0, 1), (0, 2)] * 2, 3) is None
    assert adjusted_difference([], [], [], 1) is None


def test_unused_positions_cost_no_degree_of_freedom():
    a = [1.0, 5.0, 2.0, 7.0, 3.0]
    b = [0.0, 1.0, 1.0, 2.0, 5.0]
    sides = [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1)]
    result_for_two = adjusted_difference(a, b, sides, 2)
    result_for_four = adjusted_difference(a, b, sides, 4)
    assert (result_for_four.mean, result_for_four.se, result_for_four.df) == (
        approx(result_for_two.mean),
        approx(result_for_two.se),
        result_for_two.df,
    )
    assert [effect.position for effect in result_for_four.positions] == [1]


@pytest.mark.parametrize(
    ("gains", "positions"),
    [
        ([0.0] * 6, 1),
        ([0.0] * 6, 2),
        ([0.1] * 6, 1),
        ([0.1] * 6, 2),
        ([7.3] * 6, 2),
        ([1.0, -3.0] * 3, 2),
    ],
)
def test_differences_that_vary_only_by_position_are_degenerate(gains, positions):
    b = [80.1, 70.2, 60.3, 91.4, 33.3, 12.6]
    difference = adjusted_difference(np.add(b, gains), b, [(0, 1), (1, 0)] * 3, positions)
    assert (difference.mean, difference.sd, difference.se, difference.degenerate) == (
        approx(np.mean(gains)),
        0.0,
        None,
        True,
    )
    assert (difference.t, difference.p, difference.interval(0.05), difference.positions) == (None, None, None, ())


def test_pairs_without_degrees_of_freedom_have_no_t():
    single_pair = adjusted_difference([3.0], [1.0], [(0, 1)], 1)
    assert (single_pair.mean, single_pair.df, single_pair.sd, single_pair.p, single_pair.interval(0.05)) == (
        2.0,
        0,
        None,
        None,
        None,
    )
    two_pairs = adjusted_difference([3.0, 8.0], [1.0, 2.0], [(0, 1), (1, 0)], 2)
    assert (two_pairs.mean, two_pairs.df, two_pairs.t) == (approx(4.0), 0, None)
