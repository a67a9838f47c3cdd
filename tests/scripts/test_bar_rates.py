"""The rule that scripts/bar_rates writes anew claims the same of random outcomes as the package does."""

import bar_rates
import numpy as np
import pytest
from simulation import laws

from esper_ab.stats.mean_and_bar import mean_and_bar

BARS = (-1.5, -0.7, 0.0, 0.4, 1.2)


def drawn(shape: str, number: int) -> np.ndarray:
    rng = np.random.default_rng([67, 1, number])
    return laws.runs(shape, rng.standard_normal((40, 6 + number)))


@pytest.mark.parametrize(("number", "shape"), list(enumerate(laws.SHAPES)))
def test_the_script_and_the_package_claim_the_same_by_t(number, shape):
    outcomes = drawn(shape, number)
    for bar in BARS:
        by_script = bar_rates.side_by_t(outcomes, bar)
        by_package = [mean_and_bar(list(row), bar, bar_rates.ALPHA).side for row in outcomes]
        assert by_script.tolist() == by_package
    assert (by_script != 0.0).any() or shape != "normal"


@pytest.mark.parametrize(("number", "shape"), list(enumerate(["normal", "uniform", "ceiling"])))
def test_the_script_and_the_package_claim_the_same_for_any_shape(number, shape):
    outcomes = np.clip(0.5 + 0.2 * drawn(shape, 4 + 10 * number), 0.0, 1.0)
    for bar in (0.1, 0.3, 0.5, 0.9):
        by_script = bar_rates.side_by_range(outcomes, bar, 0.0, 1.0)
        by_package = [mean_and_bar(list(row), bar, bar_rates.ALPHA, (0.0, 1.0)).side for row in outcomes]
        assert by_script.tolist() == by_package


def test_looks_are_those_of_the_assertion_with_two_runs_at_a_time():
    assert bar_rates.looks(20) == [6, 8, 10, 14, 18, 20]
