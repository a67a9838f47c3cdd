"""The deciding analysis against scipy and statsmodels, and against rules that hold for all inputs."""

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
    """(a, b, sides, positions), sides in any order that a block can have; one position: the paired t."""
    n_positions = draw(st.integers(1, 4))
    n = draw(st.integers(n_positions + 1, 14))
    values = st.lists(accuracies, min_size=n, max_size=n)
    place = st.integers(0, max(n_positions, 2) - 1)
    sides = draw(st.lists(st.tuples(place, place).filter(lambda s: s[0] != s[1]), min_size=n, max_size=n))
    return draw(values), draw(values), sides, n_positions


def approx(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def written_out(sides, positions):
    """The design once more, by indicators: position of a less position of b."""
    indicator = np.eye(max(positions, 2))[:, :positions]
    columns = np.array([indicator[a] - indicator[b] for a, b in sides])[:, 1:]
    return np.column_stack([np.ones(len(sides)), columns])


@given(experiments())
def test_equals_least_squares_of_statsmodels(experiment):
    a, b, sides, positions = experiment
    matrix = written_out(sides, positions)
    assume(np.linalg.matrix_rank(matrix) == positions)
    found = adjusted_difference(a, b, sides, positions)
    assume(found is not None and found.se is not None and found.se > 1e-6)
    fit = sm.OLS(np.array(a) - np.array(b), matrix).fit()
    low, high = fit.conf_int(0.03)[0]
    assert (found.df, found.pairs) == (fit.df_resid, len(a))
    assert found.information == approx(fit.mse_resid / fit.bse[0] ** 2)
    assert (found.mean, found.se, found.t, found.p) == tuple(
        approx(value) for value in (fit.params[0], fit.bse[0], fit.tvalues[0], fit.pvalues[0])
    )
    assert found.sd == approx(math.sqrt(fit.mse_resid))
    assert found.interval(0.03) == (approx(low), approx(high))
    assert [(e.position, e.mean) for e in found.positions] == [(k, approx(fit.params[k])) for k in range(1, positions)]
    for effect, limits in zip(found.positions, fit.conf_int(0.05)[1:], strict=True):
        assert (effect.low, effect.high) == (approx(limits[0]), approx(limits[1]))


def test_always_on_the_same_side_is_aliased():
    a = [1.0, 2.0, 4.0, 3.0]
    b = [0.0, 0.5, 1.0, 2.0]
    assert adjusted_difference(a, b, [(0, 1)] * 4, 2) is None
    assert adjusted_difference(a, b, [(0, 1)] * 3 + [(1, 0)], 2) is not None
    assert adjusted_difference(a, b, [(0, 1)] * 4, 1) is not None
    # a in 0, b in 1 or 2: tau is told apart from neither
    assert adjusted_difference(a, b, [(0, 1), (0, 2)] * 2, 3) is None
    assert adjusted_difference([], [], [], 1) is None


def test_positions_that_never_occur_cost_nothing():
    a = [1.0, 5.0, 2.0, 7.0, 3.0]
    b = [0.0, 1.0, 1.0, 2.0, 5.0]
    sides = [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1)]
    two = adjusted_difference(a, b, sides, 2)
    four = adjusted_difference(a, b, sides, 4)
    assert (four.mean, four.se, four.df) == (approx(two.mean), approx(two.se), two.df)
    assert [effect.position for effect in four.positions] == [1]


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
def test_no_variation_beside_the_positions_is_reported_and_never_divided_by(gains, positions):
    b = [80.1, 70.2, 60.3, 91.4, 33.3, 12.6]
    found = adjusted_difference(np.add(b, gains), b, [(0, 1), (1, 0)] * 3, positions)
    assert (found.mean, found.sd, found.se, found.degenerate) == (approx(np.mean(gains)), 0.0, None, True)
    assert (found.t, found.p, found.interval(0.05), found.positions) == (None, None, None, ())


def test_too_few_pairs_have_no_deviation():
    one = adjusted_difference([3.0], [1.0], [(0, 1)], 1)
    assert (one.mean, one.df, one.sd, one.p, one.interval(0.05)) == (2.0, 0, None, None, None)
    two = adjusted_difference([3.0, 8.0], [1.0, 2.0], [(0, 1), (1, 0)], 2)
    assert (two.mean, two.df, two.t) == (approx(4.0), 0, None)
