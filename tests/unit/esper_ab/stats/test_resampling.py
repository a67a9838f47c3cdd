"""The number of bootstrap resamples and the size of their batches."""

import pytest

from esper_ab.stats.resampling import batches


@pytest.mark.parametrize(
    ("resamples", "runs", "total"),
    [
        (10_000, 1, 10_000),
        (10_000, 20_000, 10_000),
        (10_000, 40_000, 5_000),
        (2_000, 10**9, 500),
    ],
)
def test_very_many_runs_are_resampled_in_batches(resamples, runs, total):
    pieces = list(batches(resamples, runs))
    assert sum(pieces) == total
    assert min(pieces) >= 1
    assert max(pieces) == 1 or max(pieces) * runs <= 1 << 21
