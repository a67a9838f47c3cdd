"""Scripts of the open questions: limits of a ratio of standard deviations, what a barrier costs, what is advised."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from open_questions import DATA, QUESTIONS
from questions import lockstep
from questions.sd_ratio import sd_ratio
from scipy import stats


@given(st.integers(0, 2**32 - 1), st.integers(5, 40), st.floats(-0.9, 0.9), st.floats(0.2, 5.0))
def test_a_ratio_lies_outside_the_limits_exactly_where_the_test_rejects_it(key, n, shared, scale):
    """The p of the correlation of sum and difference, after y was stretched by the ratio asked about."""
    rng = np.random.default_rng(key)
    common = rng.standard_normal(n)
    x = scale * (shared * common + rng.standard_normal(n))
    y = shared * common + rng.standard_normal(n)
    found = sd_ratio(x, y)
    assert found["low"] <= found["ratio"] <= found["high"]
    assert found["ratio"] == pytest.approx(np.std(x, ddof=1) / np.std(y, ddof=1))
    for asked in (1.0, 0.5 * found["ratio"], 1.7 * found["ratio"]):
        p = stats.pearsonr(x + asked * y, x - asked * y).pvalue
        assume(abs(p - 0.05) > 1e-6)
        assert (p > 0.05) == (found["low"] < asked < found["high"])


def test_swapping_the_variables_turns_the_ratio_over():
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(9), 2 * rng.standard_normal(9)
    one, other = sd_ratio(x, y), sd_ratio(y, x)
    assert one["low"] == pytest.approx(1 / other["high"])
    assert one["ratio"] == pytest.approx(1 / other["ratio"])


def test_two_pairs_say_nothing():
    with pytest.raises(ValueError, match="three pairs"):
        sd_ratio([1.0, 2.0], [2.0, 3.0])


def test_what_a_barrier_costs_is_the_difference_of_sums_of_the_slowest_and_the_slowest_sum():
    assert lockstep.saved_at_best([[[1.0, 3.0], [3.0, 1.0]]]) == pytest.approx(1 / 3)
    assert lockstep.saved_at_best([[[1.0, 3.0], [2.0, 4.0]], [[5.0], [5.0]]]) == 0.0


@pytest.mark.parametrize(("identical", "best", "advice"), [
    (False, 0.0, "until it is known why"), (True, 0.01, "the default"), (True, 0.4, "when only the result counts"),
])  # fmt: skip
def test_the_advice_on_the_barrier_follows_the_numbers(identical, best, advice):
    times = {"lockstep": [{"wall_s": 10.0, "waiting": 0.2}], "independent": [{"wall_s": 9.9, "waiting": 0.2}]}
    said = lockstep.table({"identical": identical, "modes": times, "at_best": [best]})
    assert advice in said


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_numbers_that_are_kept_still_make_their_table(name):
    assert QUESTIONS[name].table(json.loads(DATA.read_text())[name]).count("\n|") >= 2
