"""Simulate plans whose variances are moderated: false claims, power, and the rules that were not chosen.

    scripts/moderated_rates    simulate (minutes) and write the tables of docs/evidence/rates.md

The experiments are simulated in arrays with the package's own functions: its variances, bounds, looks and sign-flip
test. tests/scripts/test_moderated_rates.py compares the claims with those of the package, experiment by experiment.
"""

from __future__ import annotations

import math
import sys
import zlib
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from esper_ab.design.bounds import find_bounds  # noqa: E402
from esper_ab.design.counterbalance import Sides, order  # noqa: E402
from esper_ab.design.design import default_looks  # noqa: E402
from esper_ab.design.non_inferiority import non_inferiority_of  # noqa: E402
from esper_ab.stats.design_matrix import design_matrix  # noqa: E402
from esper_ab.stats.distributions import t_isf, t_sf  # noqa: E402
from esper_ab.stats.exact_signs import BACKED_BY_SIGNS, signs_p  # noqa: E402
from esper_ab.stats.least_pairs import smallest_p  # noqa: E402
from esper_ab.stats.moderated_variance import common_variance, moderated_variance  # noqa: E402
from esper_ab.stats.prior_df import prior_df  # noqa: E402

RNG_SEED = 66
EXPERIMENTS = 10_000
ALPHA = 0.05
MARGIN = 1.0  # SDs of a run
BLOCK = 2_000  # experiments at a time
SIGN_BLOCK = 1 << 24  # sign patterns at a time

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Law:
    """The law of a run; groups have equal means, but for the last one, which is `up` higher."""

    shape: str = "normal"
    sds: tuple[float, ...] = (1.0,)  # of the groups in turn; the last one repeats
    correlation: float = 0.0
    up: float = 0.0  # SDs of a run
    last_shape: str = ""  # of the last group; "": that of the others

    def draw(self, rng: np.random.Generator, experiments: int, seeds: int, groups: int) -> Floats:
        """Return outcomes [experiments, seeds, groups]."""
        shared = rng.standard_normal((experiments, seeds, 1))
        own = rng.standard_normal((experiments, seeds, groups))
        z = math.sqrt(self.correlation) * shared + math.sqrt(1.0 - self.correlation) * own
        sds = np.array([self.sds[min(group, len(self.sds) - 1)] for group in range(groups)])
        outcomes = _SHAPES[self.shape](z, rng) * sds
        if self.last_shape:
            outcomes[..., -1] = _SHAPES[self.last_shape](z[..., -1], rng)
        outcomes[..., -1] += self.up
        return np.asarray(outcomes)


def _skewed(z: Floats, rng: np.random.Generator, skewness: float) -> Floats:
    shape = 4.0 / skewness**2
    return np.asarray((shape - rng.gamma(shape, size=z.shape)) / math.sqrt(shape))


def _collapsing(z: Floats, rng: np.random.Generator, share: float, depth: float) -> Floats:
    return np.asarray(z + depth * (share - (rng.random(z.shape) < share)))


_SHAPES = {
    "normal": lambda z, _: z,
    "learns or not": lambda z, rng: (z > 0.0) / 0.5 + 0.1 * rng.standard_normal(z.shape),
    "lognormal": lambda z, _: (np.exp(z) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1.0)),
    "skewness 2": lambda z, rng: _skewed(z, rng, 2.0),
    "skewness 3.5": lambda z, rng: _skewed(z, rng, 3.5),
    "15 % fall by 20": lambda z, rng: _collapsing(z, rng, 0.15, 20.0),
    "5 % fall by 50": lambda z, rng: _collapsing(z, rng, 0.05, 50.0),
    "t, 3 degrees of freedom": lambda z, rng: z / np.sqrt(rng.chisquare(3, z.shape)),
}


@dataclass(frozen=True)
class Plan:
    """A plan of comparisons: all pairs, or all others against the first group."""

    groups: int
    seeds: int
    control: bool = False
    adjusted: bool = False  # for device and order
    early_stop: bool = True
    prior: int | None = None  # prior degrees of freedom; None: by the package's rule; 0: own variances
    location: str = "mean"  # "fit": Smyth's location; "mean" is that of the package

    @property
    def contrasts(self) -> list[tuple[int, int]]:
        """Return the groups of each comparison."""
        if self.control:
            return [(group, 0) for group in range(1, self.groups)]
        return list(combinations(range(self.groups), 2))

    @property
    def prior_df(self) -> int:
        """Return the prior degrees of freedom."""
        return prior_df(len(self.contrasts)) if self.prior is None else self.prior

    @property
    def looks(self) -> tuple[int, ...]:
        """Return the numbers of seeds at the looks."""
        return default_looks(self.seeds)


@cache
def orders(groups: int, seeds: int) -> tuple[tuple[int, ...], ...]:
    """Return the group in each position, by block."""
    return tuple(order(groups, block) for block in range(seeds))


def sides(plan: Plan, contrast: tuple[int, int]) -> Sides:
    """Return the positions of the two groups of a comparison, by seed; none if nothing is adjusted for."""
    if not plan.adjusted:
        return ((0, 0),) * plan.seeds
    return tuple((block.index(contrast[0]), block.index(contrast[1])) for block in orders(plan.groups, plan.seeds))


@cache
def bounds(plan: Plan) -> Floats:
    """Return the bounds on p [open comparisons - 1, looks]."""
    count = len(plan.contrasts)
    positions = plan.groups if plan.adjusted else 1
    alphas = tuple(ALPHA / n_open for n_open in range(1, count + 1))
    return np.array(find_bounds(sides(plan, plan.contrasts[0]), positions, plan.looks, alphas, prior_df=plan.prior_df))


@dataclass(frozen=True)
class Tests:
    """The tests of one look [experiments, comparisons]."""

    mean: Floats
    se: Floats
    df: Floats  # [comparisons]
    p: Floats
    variance: Floats  # each comparison's own
    adjusted: Floats  # differences [experiments, pairs, comparisons] without the effects of positions


def least_squares(plan: Plan, differences: Floats) -> Tests:
    """Return the comparison's own tests, adjusted for positions as planned; differences are [.., seeds, comparisons]"""
    pairs = differences.shape[1]
    mean = np.empty((len(differences), len(plan.contrasts)))
    variance = np.empty_like(mean)
    se = np.empty_like(mean)
    df = np.empty(len(plan.contrasts))
    adjusted = np.empty_like(differences)
    for place, contrast in enumerate(plan.contrasts):
        matrix = design_matrix(sides(plan, contrast)[:pairs], plan.groups if plan.adjusted else 1)
        inverse = np.linalg.pinv(matrix.T @ matrix)
        solution = differences[..., place] @ matrix @ inverse
        residuals = differences[..., place] - solution @ matrix.T
        df[place] = pairs - np.linalg.matrix_rank(matrix)
        mean[:, place] = solution[:, 0]
        adjusted[..., place] = residuals + solution[:, :1]
        variance[:, place] = (residuals**2).sum(axis=1) / df[place]
        se[:, place] = np.sqrt(variance[:, place] * inverse[0, 0])
    p = 2.0 * t_sf(np.abs(mean / se), df)
    return Tests(mean=mean, se=se, df=df, p=p, variance=variance, adjusted=adjusted)


def moderate(plan: Plan, own: Tests, variances: Floats, df: Floats) -> Tests:
    """Return moderated tests; `variances` and their `df` [experiments, comparisons] are those that are shared."""
    prior = plan.prior_df
    if not prior:
        return own
    common = common_variance(variances, df)[:, None]
    if plan.location == "fit":
        logs = np.log(variances) - digamma(df / 2.0) + np.log(df / 2.0)
        common = np.exp(logs.mean(axis=1) + digamma(prior / 2.0) - math.log(prior / 2.0))[:, None]
    se = own.se * np.sqrt(moderated_variance(own.variance, own.df, common, prior) / own.variance)
    total_df = own.df + prior
    return Tests(
        mean=own.mean,
        se=se,
        df=total_df,
        p=2.0 * t_sf(np.abs(own.mean / se), total_df),
        variance=own.variance,
        adjusted=own.adjusted,
    )


def supported(differences: Floats, share: float) -> Bools:
    """Return whether the exact sign-flip test supports a claim of each row of differences [rows, pairs]."""
    pairs = differences.shape[1]
    if pairs not in BACKED_BY_SIGNS or smallest_p(pairs) > share:
        return np.ones(len(differences), dtype=np.bool_)
    rows = max(1, SIGN_BLOCK >> pairs)
    parts = [signs_p(differences[first : first + rows]) for first in range(0, len(differences), rows)]
    return np.concatenate([np.zeros(0), *parts]) <= share


def claims(plan: Plan, outcomes: Floats, *, signs: bool = True) -> Floats:
    """Return the direction of each claim, 1.0 or -1.0, and 0.0 without one [experiments, comparisons].

    As in the package, a comparison that is decided beyond the margin passes its share of alpha on. `signs`: whether
    claims need the sign-flip test from 11 pairs on, too, where it takes minutes.
    """
    a, b = np.array(plan.contrasts).T
    all_differences = outcomes[..., a] - outcomes[..., b]
    count = len(plan.contrasts)
    directions = np.zeros((len(outcomes), count))
    passed = np.zeros((len(outcomes), count), dtype=np.bool_)
    variances = np.ones(directions.shape)  # of the pairs before each comparison's decision
    df = np.ones(directions.shape)
    for look, pairs in enumerate(plan.looks):
        own = least_squares(plan, all_differences[:, :pairs])
        taking_part = (directions == 0.0) | (not plan.early_stop)
        variances = np.where(taking_part, own.variance, variances)
        df = np.where(taking_part, own.df, df)
        tests = moderate(plan, own, variances, df)
        while True:
            n_open = count - passed.sum(axis=1)
            bound = bounds(plan)[np.maximum(n_open, 1) - 1, look][:, None]
            crossing = (tests.p <= bound) & (directions == 0.0)
            if signs or pairs < 11:
                for share_open in np.unique(n_open[crossing.any(axis=1)]):
                    crossing &= _supported(own.adjusted, crossing, n_open == share_open, ALPHA / share_open)
            if not crossing.any():
                break
            directions = np.where(crossing, np.sign(tests.mean), directions)
            reach = t_isf(np.broadcast_to(bound, tests.p.shape) / 2.0, tests.df) * tests.se
            passed |= crossing & (np.abs(tests.mean) - reach >= MARGIN)
    return directions


def _supported(differences: Floats, crossing: Bools, chosen: Bools, share: float) -> Bools:
    """Return False where an experiment is `chosen` and the sign-flip test does not support its claim at `share`."""
    experiments, comparisons = np.nonzero(crossing & chosen[:, None])
    result = np.ones(crossing.shape, dtype=np.bool_)
    result[experiments, comparisons] = supported(differences[experiments, :, comparisons], share)
    return result


def rate(plan: Plan, law: Law, experiments: int = EXPERIMENTS) -> float:
    """Return in how many percent of experiments there is a false claim or, if a group is better, that it is found.

    It is found in one comparison: that of the last two groups or, with a control, of the last group with it.
    """
    # Plans that differ in the rule alone get the same experiments.
    key = zlib.crc32(f"{plan.groups} {plan.seeds} {law}".encode())
    rng = np.random.default_rng([RNG_SEED, key])
    counted = 0
    place = len(plan.contrasts) - 1
    direction = 1.0 if plan.control else -1.0
    for first in range(0, experiments, BLOCK):
        outcomes = law.draw(rng, min(BLOCK, experiments - first), plan.seeds, plan.groups)
        claimed = claims(plan, outcomes, signs=law.shape == "learns or not" and not law.up)
        if law.up:
            counted += int(np.sum(claimed[:, place] == direction))
        else:
            counted += int(np.sum((claimed != 0.0).any(axis=1)))
    return 100.0 * counted / experiments


def false_not_worse(plan: Plan, law: Law, experiments: int = EXPERIMENTS) -> float:
    """Return in how many percent of experiments a group is called not worse that is worse by the margin."""
    looks = default_looks(plan.seeds, "not-worse")
    pairs_of_positions = ((0, 0),) * plan.seeds
    count = len(plan.contrasts)
    bound_p = non_inferiority_of(ALPHA, count, pairs_of_positions, 1, looks, plan.prior_df).nominal_p
    rng = np.random.default_rng([RNG_SEED, 2, plan.groups, plan.seeds])
    outcomes = law.draw(rng, experiments, plan.seeds, plan.groups)
    claimed = np.zeros((experiments, count), dtype=np.bool_)
    for pairs, bound in zip(looks, bound_p, strict=True):
        own = least_squares(plan, outcomes[:, :pairs, 1:] - outcomes[:, :pairs, :1] - MARGIN)
        tests = moderate(plan, own, own.variance, np.broadcast_to(own.df, own.variance.shape))
        claimed |= t_sf((tests.mean + MARGIN) / tests.se, tests.df) <= bound
    return 100.0 * float(claimed.any(axis=1).mean())


if __name__ == "__main__":
    import moderated_rate_page

    moderated_rate_page.write()
