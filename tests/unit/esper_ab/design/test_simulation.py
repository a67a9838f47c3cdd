"""How a planned comparison ends: the simulation of looks against experiments that are drawn and judged one by one."""

import numpy as np
import pytest
from scipy import stats

from esper_ab.design.any_shape import ShapeBound
from esper_ab.design.design import default_looks
from esper_ab.design.scheme import PowerQuestion, scheme
from esper_ab.design.simulation import MARGINS, Simulation, endings_at_margins
from esper_ab.stats.bounded_mean import log_evidence

EXPERIMENTS = 4_000
QUESTION = PowerQuestion(margin=1.0, positions_matter=False)


def make_simulation(seeds, question=QUESTION):
    return Simulation(scheme(seeds, default_looks(seeds), question), np.random.default_rng(1), 20_000)


def draw_endings(seeds, effect, margin, bounds):
    """Return the shares of better, worse, small and undecided, and the mean pairs, of experiments with normal pairs."""
    pairs = np.random.default_rng(2).standard_normal((EXPERIMENTS, seeds)) + effect
    words = np.full(EXPERIMENTS, "undecided", dtype=object)
    used = np.full(EXPERIMENTS, seeds)
    is_open = np.ones(EXPERIMENTS, dtype=bool)
    for look, bound in bounds:
        mean = pairs[:, :look].mean(axis=1)
        se = pairs[:, :look].std(axis=1, ddof=1) / np.sqrt(look)
        crossed = np.abs(mean) / se >= stats.t.isf(bound / 2.0, look - 1)
        one_sided = stats.t.isf(bound, look - 1) * se
        two_sided = stats.t.isf(bound / 2.0, look - 1) * se
        last = look == seeds
        half_width = np.where(crossed, two_sided, one_sided)
        small = (np.abs(mean) + half_width < margin) & last & (seeds >= 15)
        words[is_open & crossed] = np.where(mean > 0.0, "better", "worse")[is_open & crossed]
        words[is_open & small] = "small"
        used[is_open & crossed] = look
        is_open &= ~crossed
    return [np.mean(words == word) for word in ("better", "worse", "small", "undecided")], used.mean()


@pytest.mark.parametrize("seeds", [6, 10, 16, 30])
@pytest.mark.parametrize("effect", [0.0, 0.6, 1.2])
def test_simulated_endings_equal_those_of_drawn_experiments(seeds, effect):
    simulation = make_simulation(seeds)
    endings = simulation.endings(effect, 1.2)
    bounds = list(zip(simulation.scheme.process.looks, simulation.scheme.nominal_p, strict=True))
    shares, used = draw_endings(seeds, effect, 1.2, bounds)
    simulated = [endings.better, endings.worse, endings.small, endings.undecided]
    assert sum(simulated) == pytest.approx(1.0)
    assert simulated == pytest.approx(shares, abs=0.035)  # four standard errors of 4,000 experiments
    assert endings.replicates == pytest.approx(used, abs=0.4)


@pytest.mark.parametrize("seeds", [6, 16])
def test_the_chance_of_better_is_the_power_if_nothing_can_be_called_small(seeds):
    simulation = make_simulation(seeds)
    assert simulation.endings(1.0, 0.01).better == pytest.approx(simulation.power(1.0), abs=0.012)


def test_five_seeds_always_end_undecided():
    assert make_simulation(5).endings(9.0, 1.0).undecided == 1.0


def test_stops_for_futility_save_seeds_where_nothing_differs():
    stopping = make_simulation(30, PowerQuestion(margin=1.0, positions_matter=False, futility=0.8))
    margin = 0.5
    assert stopping.endings(0.0, margin).replicates < make_simulation(30).endings(0.0, margin).replicates - 1.0
    better = stopping.endings(margin, margin).better
    assert better == pytest.approx(stopping.with_stops(margin, margin)[0], abs=1e-9)


def test_endings_are_given_for_no_difference_and_up_to_twice_the_margin():
    endings = endings_at_margins(make_simulation(16), 0.7)
    assert len(endings) == len(MARGINS) == 4
    chances = [ending.better for ending in endings]
    assert chances == sorted(chances)
    assert chances[0] < 0.03 < 0.5 < chances[-1]


@pytest.mark.parametrize(("seeds", "effect"), [(16, 0.0), (16, 1.5), (30, 1.2)])
def test_claims_for_any_shape_are_simulated_as_drawn_experiments_make_them(seeds, effect):
    size = 5.0
    bound = ShapeBound(size=size, evidence=40.0)
    simulation = make_simulation(seeds).with_shape_bound(bound)
    endings = simulation.endings(effect, 1.2)
    pairs = np.clip(np.random.default_rng(6).standard_normal((EXPERIMENTS, seeds)) + effect, -size, size)
    better = np.zeros(EXPERIMENTS, dtype=bool)
    for look, p in zip(simulation.scheme.process.looks, simulation.scheme.nominal_p, strict=True):
        t = stats.ttest_1samp(pairs[:, :look], 0.0, axis=1).statistic
        evidence = log_evidence(pairs[:, :look], size)
        better |= (t >= stats.t.isf(p / 2.0, look - 1)) & (evidence >= np.log(40.0))
    inside = np.minimum(log_evidence(pairs, size, -1.2), log_evidence(-pairs, size, -1.2)) >= np.log(20.0)
    assert endings.better == pytest.approx(np.mean(better & ~inside), abs=0.04)
    assert endings.small <= np.mean(inside) + 0.04
    assert simulation.power(effect) == pytest.approx(np.mean(better), abs=0.04)


def test_no_effect_beyond_the_largest_possible_difference_is_searched():
    three = make_simulation(6, PowerQuestion(margin=1.0, comparisons=3, positions_matter=False))
    assert three.with_shape_bound(ShapeBound(size=2.0, evidence=120.0)).smallest_effect is None
    assert three.with_shape_bound(None) is three
