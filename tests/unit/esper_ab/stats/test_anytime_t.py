"""The anytime-valid t against the integral that defines it, and its interval."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from esper_ab.stats.anytime_t import anytime_interval, least_t, log_evidence

ts = st.floats(-50.0, 50.0)
counts = st.integers(2, 60)


@pytest.mark.parametrize(
    ("t", "df", "information", "g"), [(0.0, 4, 6.0, 1.0), (2.5, 7, 9.0, 1.0), (-4.0, 8, 9.5, 0.25)]
)
def test_the_evidence_is_the_bayes_factor_of_t(t, df, information, g):
    """Noncentral t density averaged over effects drawn from N(0, 1/g), over the central one."""

    def weighted(effect):
        return stats.nct.pdf(t, df, effect * math.sqrt(information)) * stats.norm.pdf(effect, scale=1.0 / math.sqrt(g))

    averaged_density = integrate.quad(weighted, -15.0, 15.0, limit=200, points=[t / math.sqrt(information)])[0]
    assert math.exp(log_evidence(t, df, information, g)) == pytest.approx(
        averaged_density / stats.t.pdf(t, df), rel=1e-5
    )


@given(st.floats(-30, 30), st.floats(0.01, 10), counts, st.floats(1.5, 1e4))
def test_the_interval_ends_where_the_evidence_reaches_the_bound(mean, se, n, evidence):
    interval = anytime_interval(mean, se, n - 1, float(n), evidence)
    if interval is None:  # the supremum of the e-value over t stays below
        assert log_evidence(1e9, n - 1, float(n)) <= math.log(evidence) + 1e-6
        return
    low, high = interval
    assert high - mean == pytest.approx(mean - low, rel=1e-9)
    for edge in (low, high):
        assert log_evidence((mean - edge) / se, n - 1, float(n)) == pytest.approx(math.log(evidence), abs=1e-6)
    assert log_evidence(0.0, n - 1, float(n)) < 0.0


@pytest.mark.parametrize("df", [2, 4, 8])
def test_an_unreachable_evidence_bound_gives_no_interval(df):
    """The supremum over t is r ** (-df / 2), here for r = 1/2, and no t reaches it."""
    assert anytime_interval(0.0, 1.0, df, 1.0, 2.0 ** (df / 2)) is None
    assert anytime_interval(0.0, 1.0, df, 1.0, 2.0 ** (df / 2) - 1e-3) is not None


def test_two_pairs_have_no_anytime_interval():
    assert anytime_interval(1.0, 0.1, 1, 2.0, 20.0) is None


@given(counts, st.floats(1.5, 1e4))
def test_the_least_t_has_just_the_evidence(n, evidence):
    t = least_t(n - 1, float(n), evidence)
    if math.isinf(t):
        assert log_evidence(1e9, n - 1, float(n)) <= math.log(evidence) + 1e-6
    else:
        assert log_evidence(t, n - 1, float(n)) == pytest.approx(math.log(evidence), abs=1e-6)
