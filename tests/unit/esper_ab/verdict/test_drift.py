"""Whether the differences of a comparison depend on when its pairs were run, which caps what may be claimed. Pure."""

import numpy as np
import pytest
from support.outcomes.compared_designs import design, pairs_of

from esper_ab.stats.drift import drift
from esper_ab.verdict.drift import drift_findings

# Drift: it is said from the level on that all comparisons and both tests share.


@pytest.mark.parametrize(("slope", "wave"), [(0.06, 0.0), (0.0, 2.0), (0.0, 0.0)])
def test_each_test_has_its_share_of_one_in_a_hundred(slope, wave):
    at = np.arange(30)
    noise = np.random.default_rng(3).standard_normal(30)
    pairs = pairs_of(70.0 + slope * at + wave * np.sin(at / 3.0) + noise, np.full(30, 70.0))
    seen = drift(pairs, 1)
    for comparisons in range(1, 30):
        rule = design(20, comparisons)
        said = " ".join(one.sentence for one in drift_findings(rule, rule.comparisons[0], pairs, "Repeat it."))
        assert ("a trend of" in said) == (seen.slope_p <= 0.01 / (2 * comparisons))
        assert ("an autocorrelation of" in said) == (seen.autocorrelation_p <= 0.01 / (2 * comparisons))
