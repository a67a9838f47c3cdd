"""The seeds of an open-ended plan, against the e-values of drawn experiments and by their laws."""

import math

import numpy as np
import pytest

from esper_ab.design.open_ended import open_ended_seeds
from esper_ab.design.pairs_needed import fewest_pairs
from esper_ab.stats.anytime_t import log_evidence

EVIDENCE = 20.0


def drawn_seeds(effect, most, experiments=400):
    """Return the seeds that each of some experiments uses, by an e-value after every pair."""
    pairs = np.random.default_rng(5).normal(effect, 1.0, (experiments, most))
    used = []
    for differences in pairs:
        for n in range(6, most + 1):
            sample = differences[:n]
            t = sample.mean() / sample.std(ddof=1) * math.sqrt(n)
            if t > 0.0 and log_evidence(t, n - 1, n) >= math.log(EVIDENCE):
                break
        used.append(n)
    return np.array(used)


def seeds_of(effect, evidence=EVIDENCE, columns=1):
    return open_ended_seeds(effect, evidence, columns, fewest_pairs(1.0, effect, 0.05))


def test_the_seeds_are_those_of_experiments_with_an_e_value_after_every_pair():
    used = drawn_seeds(1.0, 60)
    seeds = seeds_of(1.0)
    assert seeds.mean == pytest.approx(used.mean(), abs=3.0 * used.std() / 20.0)
    assert seeds.most == pytest.approx(np.quantile(used, 0.8), abs=1.5)


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0, 2.0])
def test_a_plan_without_a_maximum_costs_more_than_one_with_a_maximum(effect):
    seeds = seeds_of(effect)
    fewest = fewest_pairs(1.0, effect, 0.05)
    assert seeds.mean > fewest
    assert seeds.most > 1.2 * fewest


def test_smaller_differences_and_stricter_evidence_need_more_seeds():
    assert seeds_of(0.5).mean > seeds_of(1.0).mean
    assert seeds_of(1.0, evidence=60.0).mean > seeds_of(1.0).mean
