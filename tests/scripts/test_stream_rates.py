"""The simulated rule of streams decides what the package decides."""

import numpy as np
import pytest
import stream_rates
import stream_simulation

from esper_ab.stats.one_sided_looks import OneSidedTest
from esper_ab.stats.online_fdr import SPREAD, level

LEVELS = np.array([0.0005, 0.002, 0.02])


def decided_by_package(differences, one_level):
    test = OneSidedTest(looks=stream_simulation.LOOKS, margin=0.0, level=one_level, alpha=0.05)
    for look in test.looks:
        taken = test.at(look, differences[:look])
        if taken.crossed or taken.hopeless:
            break
    return taken.crossed, look


@pytest.mark.parametrize("law", list(stream_simulation.LAWS))
def test_the_script_and_the_package_decide_alike(law):
    rng = np.random.default_rng(8)
    shape = (150, stream_simulation.LOOKS[-1])
    differences = rng.choice([0.0, 0.7, 1.5], (150, 1)) + stream_simulation.LAWS[law](rng, shape)
    levels = rng.choice(LEVELS, 150)
    accepted, pairs = stream_simulation.staged(differences, levels, stream_simulation.LOOKS)
    by_package = [decided_by_package(d, one_level) for d, one_level in zip(differences, levels, strict=True)]
    assert list(zip(accepted.tolist(), pairs.tolist(), strict=True)) == by_package


def test_the_levels_are_those_of_the_package():
    levels = stream_simulation.e_lond(SPREAD)(7, np.array([0.0, 3.0]), np.zeros(2))
    assert levels == pytest.approx([level(0.05, 7, 0), level(0.05, 7, 3)])


def test_the_false_share_and_the_claimed_value_hold_with_fewer_streams():
    """200 candidates, 5 % of them real, adaptive proposals: the promise of a stream."""
    ended = stream_simulation.simulate(stream_rates.STREAM, stream_simulation.World(), streams=200)
    assert ended.false_share.mean() < 0.05
    assert abs(ended.error.mean()) < 0.3
    assert np.mean(np.abs(ended.error) <= 1.0) > 0.6
    kept = stream_simulation.simulate(stream_rates.LOOPS["keep if higher, one run"], stream_simulation.World(), 200)
    assert kept.false_share.mean() > 0.5
    assert kept.error.mean() > 1.0
