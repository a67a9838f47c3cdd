"""Boundaries against published boundaries and against least squares on simulated pairs, and their cache."""

import numpy as np
import pytest
from scipy import stats

from esper_ab.design import bounds
from esper_ab.design.boundaries import beta_spent, futility_p, nominal_p, obrien_fleming_spent
from esper_ab.design.bounds import find_bounds
from esper_ab.design.t_process import draw, t_process, t_values
from esper_ab.stats.adjusted_difference import adjusted_difference

ALTERNATING = [(0, 1), (1, 0)] * 20
THREE = [(0, 1), (2, 0), (1, 2), (1, 0), (0, 2), (2, 1)] * 5
PATHS = 400_000


def compute_boundaries(sides, positions, looks, alphas, rng_seed=7, paths=PATHS):
    process = t_process(sides[: looks[-1]], positions, looks)
    return nominal_p(process, looks, alphas, np.random.default_rng(rng_seed), paths)


def test_the_spending_function_has_the_published_values():
    assert obrien_fleming_spent(0.05, 1.0) == pytest.approx(0.05, rel=1e-12)
    # Lan-DeMets O'Brien-Fleming, two-sided 5 %, at half of the information: 0.00305 (one-sided 0.00153).
    assert obrien_fleming_spent(0.05, 0.5) == pytest.approx(0.00305, abs=5e-6)
    shares = [obrien_fleming_spent(0.05, share) for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
    assert shares == sorted(shares)


def test_boundaries_equal_published_boundaries():
    bound_p = compute_boundaries(ALTERNATING, 2, (6, 10, 14, 20), [0.05])[0]
    assert bound_p == pytest.approx((8.7e-5, 0.0030, 0.0131, 0.0436), rel=0.02)
    assert bound_p[0] == obrien_fleming_spent(0.05, 6 / 20)  # exact; the published one carries 6 % simulation error


def test_boundaries_for_several_alphas_equal_those_computed_one_by_one():
    assert compute_boundaries(ALTERNATING, 2, (7,), [0.05, 0.025]) == ((0.05,), (0.025,))
    looks = (6, 10, 14, 20)
    alphas = [0.05 / m for m in (3, 2, 1)]
    joint_boundaries = compute_boundaries(ALTERNATING, 2, looks, alphas)
    for alpha, bound_p in zip(alphas, joint_boundaries, strict=True):
        assert bound_p == pytest.approx(compute_boundaries(ALTERNATING, 2, looks, [alpha])[0], rel=0.01)
        assert list(bound_p) == sorted(bound_p)
        spent_alpha = [obrien_fleming_spent(alpha, look / 20) for look in looks]
        increments = np.diff(spent_alpha, prepend=0.0)
        assert all(low <= p <= high for low, p, high in zip(increments, bound_p, spent_alpha, strict=True))


@pytest.mark.parametrize(("sides", "positions"), [(ALTERNATING, 1), (ALTERNATING, 2), (THREE, 3), (ALTERNATING[1:], 2)])
def test_simulated_t_values_have_the_distribution_of_least_squares(sides, positions):
    """t from the reduced draws and t from simulated pairs agree in law: at each look, and from look to look."""
    looks = (7, 10, 16)
    paths = 1500
    rng = np.random.default_rng(3)
    process = t_process(sides, positions, looks)
    reduced_t = t_values(process, draw(process, paths, rng), effect=0.5)
    pairs = rng.standard_normal((paths, looks[-1])) + 0.5
    direct_t = np.array(
        [[adjusted_difference(d[:n], np.zeros(n), sides[:n], positions).t for d in pairs] for n in looks]
    )
    for reduced_at_look, direct_at_look in zip(reduced_t, direct_t, strict=True):
        assert stats.ks_2samp(reduced_at_look, direct_at_look).pvalue > 1e-3
    for left_look, right_look in ((0, 1), (1, 2), (0, 2)):
        assert (
            stats.ks_2samp(
                reduced_t[right_look] - reduced_t[left_look], direct_t[right_look] - direct_t[left_look]
            ).pvalue
            > 1e-3
        )
        assert stats.spearmanr(*reduced_t[[left_look, right_look]])[0] == pytest.approx(
            stats.spearmanr(*direct_t[[left_look, right_look]])[0], abs=0.06
        )


@pytest.mark.parametrize(
    ("sides", "positions", "looks", "df"),
    [(ALTERNATING, 1, (2, 3, 4), (1, 2, 3)), (ALTERNATING, 2, (3, 4), (1, 2)), (THREE, 3, (4,), (1,))],
)
def test_looks_without_a_degree_of_freedom_are_left_out(sides, positions, looks, df):
    """Earlier looks are left out: each position effect costs one degree of freedom, and the mean another."""
    process = t_process(sides, positions, (1, 2, 3, 4))
    assert (process.looks, process.df) == (looks, df)


def test_many_looks_spend_alpha_as_planned():
    """On independent draws, the rejections up to each look follow the spending function."""
    looks = (6, 8, 10, 12, 14, 16, 18, 20)
    paths = 400_000
    bound_p = compute_boundaries(ALTERNATING, 2, looks, [0.05])[0]
    process = t_process(ALTERNATING, 2, looks)
    t = t_values(process, draw(process, paths, np.random.default_rng(123)))
    crossed = np.abs(t) >= stats.t.isf(np.array(bound_p) / 2, process.df)[:, None]
    rejection_rates = np.logical_or.accumulate(crossed, axis=0).mean(axis=1)
    spent_alpha = np.array([obrien_fleming_spent(0.05, look / 20) for look in looks])
    assert (np.abs(rejection_rates - spent_alpha) < 5 * np.sqrt(spent_alpha / paths)).all()


def test_the_look_after_an_aliased_look_spends_the_alpha_of_both_looks():
    sides = [(0, 1)] * 6 + [(1, 0)] * 14
    bound_p = compute_boundaries(sides, 2, (6, 10, 20), [0.05])[0]
    assert bound_p[0] == 0.0
    assert bound_p[1] == obrien_fleming_spent(0.05, 0.5)
    assert compute_boundaries([(0, 1)] * 10, 2, (6, 10), [0.05, 0.01]) == ((0.0, 0.0), (0.0, 0.0))


REQUEST = (tuple(ALTERNATING[:10]), 2, (6, 10), (0.05,))


def test_bounds_do_not_depend_on_the_cache():
    bound_p = find_bounds(*REQUEST)
    assert bound_p[0] == pytest.approx((0.0076, 0.0455), rel=0.02)
    bounds._simulated.cache_clear()
    assert find_bounds([[0, 1], [1, 0]] * 5, *REQUEST[1:]) == bound_p  # as sides come out of JSON
    assert find_bounds(((0, 1),) * 6, 1, (6,), (0.05, 0.02)) == ((0.05,), (0.02,))


@pytest.mark.parametrize(
    ("shares", "published_z"),
    [((0.5, 1.0), (2.9626, 1.9686)), ((1 / 3, 2 / 3, 1.0), (3.7103, 2.5114, 1.9930))],
)
def test_bounds_for_many_pairs_equal_those_published_for_gsdesign(shares, published_z):
    """Lan-DeMets spending after O'Brien-Fleming at equal steps, one-sided 0.025, z: sfLDOF of gsDesign."""
    looks = tuple(round(600 * share) for share in shares)
    process = t_process([(0, 1)] * 600, 1, looks)
    (bound_p,) = nominal_p(process, looks, (0.05,), np.random.default_rng(3), paths=400_000)
    assert stats.norm.isf(np.array(bound_p) / 2.0) == pytest.approx(published_z, abs=0.02)


# What gsDesign prints for non-binding designs (test.type 4, alpha 0.025, beta 0.1): lower bounds on z, drift of the
# last z under the alternative, and cumulative beta spent. Its z is relative to no difference; relative to the
# alternative, z is less by drift sqrt(share).
GSDESIGN = [  # (shares, lower bounds, drift, spent)
    ((31 / 69, 48 / 69), (0.07, 1.11), 0.4065 * 69**0.5, (0.0141, 0.0486)),  # sfl = sfLDOF, example of toInteger()
    ((0.25, 0.5, 0.75), (0.03, 0.88, 1.51), 3.2415 * 1.297**0.5, (0.0350, 0.0623, 0.0835)),  # sfHSD, gamma 1
]


@pytest.mark.parametrize(("shares", "lower_bounds", "drift", "spent_beta"), GSDESIGN)
def test_futility_bounds_for_many_pairs_equal_those_of_gsdesign(shares, lower_bounds, drift, spent_beta):
    """With the beta that gsDesign spends; its efficacy boundaries move the bounds by less than it prints."""
    if shares == GSDESIGN[0][0]:
        assert [beta_spent(0.1, share) for share in shares] == pytest.approx(spent_beta, abs=1e-4)
    looks = (*(round(1200 * share) for share in shares), 1200)
    process = t_process([(0, 1)] * 1200, 1, looks)
    futility_bounds = futility_p(process, looks, spent_beta, np.random.default_rng(3), paths=400_000)
    assert futility_bounds[-1] == 0.0
    expected = [bound - drift * share**0.5 for bound, share in zip(lower_bounds, shares, strict=True)]
    assert stats.norm.ppf(futility_bounds[:-1]) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("positions", [1, 2])
def test_futility_stops_miss_a_difference_of_the_margin_as_often_as_declared(positions):
    """On independent draws with few pairs, for any spread, by the t relative to the margin."""
    looks = (6, 10, 14, 20)
    beta = 0.2
    paths = 400_000
    planned_beta = [beta_spent(beta, look / 20) for look in looks[:-1]]
    process = t_process(ALTERNATING, positions, looks)
    futility_bounds = futility_p(process, looks, planned_beta, np.random.default_rng(3))
    t = t_values(process, draw(process, paths, np.random.default_rng(5)))
    below = t <= -stats.t.isf(np.array(futility_bounds), process.df)[:, None]
    stopped = np.logical_or.accumulate(below, axis=0).mean(axis=1)
    spent_beta = np.array([*planned_beta, planned_beta[-1]])
    assert (np.abs(stopped - spent_beta) < 6 * np.sqrt(spent_beta / paths)).all()


def test_a_look_without_new_information_repeats_the_previous_test():
    """Only the seventh pair has the third position, so it estimates that effect and nothing else."""
    process = t_process([*ALTERNATING[:6], (0, 2)], 3, (6, 7))
    assert process.df == (4, 4)
    t_before, t_after = t_values(process, draw(process, 100, np.random.default_rng(1)), effect=0.5)
    np.testing.assert_allclose(t_after, t_before, rtol=1e-9)
