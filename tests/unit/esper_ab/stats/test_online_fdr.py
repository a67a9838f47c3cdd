"""The levels of a stream of tests: what they sum to, and the false share that they allow."""

import numpy as np
import pytest

from esper_ab.stats.online_fdr import level, spent, weight


def test_the_weights_sum_to_what_is_spent():
    assert sum(map(weight, range(1, 201))) == pytest.approx(spent(200), rel=1e-12)
    assert spent(0) == 0.0
    assert 0.99 < spent(10_000) < 1.0


def test_a_discovery_raises_the_next_level():
    assert level(0.05, 7, 2) == pytest.approx(3.0 * level(0.05, 7, 0))
    assert level(0.05, 8, 0) < level(0.05, 7, 0)


def test_the_false_share_is_at_most_alpha_even_if_every_test_errs_as_often_as_it_may():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(4_000):
        false, true = 0, 0
        for number in range(1, 101):
            is_real = number % 10 == 0
            hits = is_real or rng.random() < level(0.2, number, false + true)
            true += is_real
            false += hits and not is_real
        shares.append(false / max(1, false + true))
    assert np.mean(shares) < 0.2
