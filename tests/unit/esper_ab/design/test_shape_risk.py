"""Whether the shape of runs raises the error rate, and what is then said."""

import numpy as np
import pytest

from esper_ab.design.shape_risk import ShapeRisk, risk_line, shape_risk

SKEWED = 70.0 + np.log(1.0 - np.linspace(0.02, 0.995, 20)) * 2.0


def test_symmetric_runs_have_no_risk():
    assert shape_risk(np.linspace(-1.0, 1.0, 20), 20) is None


@pytest.mark.parametrize("values", [np.linspace(0.0, 1.0, 5), np.full(20, 3.0)])
def test_few_runs_and_runs_that_do_not_vary_have_no_risk(values):
    assert shape_risk(values, 20) is None


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_tail_on_either_side_is_a_risk(side):
    risk = shape_risk(side * SKEWED, 20)
    assert (risk.tail, risk.values) == (0, 20)
    assert risk.rate > 0.1
    assert np.sign(risk.skewness) == -side


def test_a_failed_run_is_the_risk_of_failures_as_frequent_and_deep():
    risk = shape_risk(np.append(np.linspace(70.0, 71.0, 19), 20.0), 20)
    assert (risk.tail, risk.rate > 0.3) == (1, True)


def test_the_line_names_the_shape_the_rate_and_the_option():
    skewed_runs = ShapeRisk(rate=0.169, skewness=-2.13, tail=0, values=20)
    assert risk_line(skewed_runs, "runs") == (
        "Shape: the 20 runs are skewed (skewness -2.1). Against a group that hardly varies, about 17 % of such plans "
        "would claim a difference that is not there; --shape any keeps them at alpha."
    )
    failed_runs = ShapeRisk(rate=0.4, skewness=-4.0, tail=2, values=20)
    assert risk_line(failed_runs, "runs").startswith("Shape: 2 of 20 runs lie far from all others. Against ")
