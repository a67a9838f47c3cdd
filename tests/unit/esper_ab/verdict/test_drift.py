"""Differences that depend on the time of their pairs cap the verdict."""

import numpy as np
import pytest
from support.outcomes.compared_designs import design, pairs_of

from esper_ab.stats.drift import drift
from esper_ab.verdict.drift import drift_findings


@pytest.mark.parametrize(("slope", "wave"), [(0.06, 0.0), (0.0, 2.0), (0.0, 0.0)])
def test_all_drift_tests_share_a_level_of_1_percent(slope, wave):
    index = np.arange(30)
    noise = np.random.default_rng(3).standard_normal(30)
    pairs = pairs_of(70.0 + slope * index + wave * np.sin(index / 3.0) + noise, np.full(30, 70.0))
    expected = drift(pairs, 1)
    for comparisons in range(1, 30):
        rule = design(20, comparisons)
        sentences = " ".join(
            finding.sentence for finding in drift_findings(rule, rule.comparisons[0], pairs, "Repeat it.")
        )
        assert ("a trend of" in sentences) == (expected.slope_p <= 0.01 / (2 * comparisons))
        assert ("an autocorrelation of" in sentences) == (expected.autocorrelation_p <= 0.01 / (2 * comparisons))
