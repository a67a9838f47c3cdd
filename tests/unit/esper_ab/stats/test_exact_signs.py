"""The exact p of the sign-flip test, for one sample and for many samples."""

import numpy as np
import pytest

from esper_ab.stats.exact_signs import MAX_PAIRS, signs_p


def test_the_exact_p_is_the_share_of_sign_patterns_with_as_large_a_sum():
    d = np.array([3.0, 2.0, 1.0, -0.5])
    sums = [a * 3.0 + b * 2.0 + c * 1.0 + e * 0.5 for a in (1, -1) for b in (1, -1) for c in (1, -1) for e in (1, -1)]
    assert float(signs_p(d)) == np.mean([abs(total) >= 5.5 for total in sums]) == 4 / 16


def test_the_p_values_of_many_samples_equal_those_computed_one_by_one():
    samples = np.random.default_rng(5).standard_normal((3, 4, 7)) + 0.5
    whole = signs_p(samples)
    assert whole.shape == (3, 4)
    assert whole.ravel().tolist() == [float(signs_p(sample)) for sample in samples.reshape(12, 7)]


def test_too_many_sign_patterns_to_enumerate_are_refused():
    with pytest.raises(ValueError, match="too many sign patterns; the most are 20"):
        signs_p(np.ones(MAX_PAIRS + 1))
