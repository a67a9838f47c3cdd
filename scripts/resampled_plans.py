"""Plans resampled from stored pairs of runs: how often a comparison claims a difference in the right direction.

The differences of stored pairs are taken as all there are: pairs are drawn from them with replacement, and judged by
the rule of a plan with default looks, as `verdict/looks.py` judges one comparison that is not adjusted for positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from esper_ab.design.bounds import find_bounds
from esper_ab.design.design import default_looks
from esper_ab.stats.distributions import t_isf
from esper_ab.stats.exact_signs import BACKED_BY_SIGNS, signs_p
from esper_ab.stats.floats import Bools, Floats, Ints
from esper_ab.stats.rounding import rests_on_others

ALPHA = 0.05
RESAMPLES = 2_000  # standard error of a chance of 80 %: 0.9 points
# Sizes of plans that are tried: every even number up to 30, then in steps of about 7 %.
SIZES = (*range(6, 31, 2), 32, 34, 36, 40, 42, 46, 48, 52, 56, 60, 64, 68, 74, 80, 86, 92, 98, 106, 114, 122, 130, 140)
MOST_PAIRS = SIZES[-1]
_ENUMERATED = 12  # pairs up to which all patterns of signs are tried; above, some are drawn
_PATTERNS = 2_048  # standard error of a p of 0.05: 0.005
_SEED = 66


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The looks of a plan with one comparison, and the two-sided p that each of them needs."""

    looks: tuple[int, ...]
    nominal_p: tuple[float, ...]


@cache
def rule_of(pairs: int) -> Rule:
    """Return the rule of a plan of `pairs` pairs with default looks."""
    looks = default_looks(pairs)
    (nominal_p,) = find_bounds(tuple((0, 1) for _ in range(pairs)), 1, looks, (ALPHA,))
    return Rule(looks=looks, nominal_p=nominal_p)


def drawn_places(stored: int, pairs: int) -> Ints:
    """Return the places of the drawn pairs among `stored` ones, [resamples, pairs]; the same for every outcome."""
    rng = np.random.default_rng([_SEED, stored, pairs])
    return rng.integers(stored, size=(RESAMPLES, pairs))


def directions(differences: Floats, places: Ints, rule: Rule) -> Ints:
    """Return for each resample the direction of the claim at its first look that makes one; 0 without a claim.

    `differences` [stored]: of the stored pairs. `places` [resamples, pairs]: those drawn.
    """
    _, kinds = np.unique(differences, return_inverse=True)
    drawn = differences[places]
    drawn_kinds = kinds[places]
    direction = np.zeros(len(places), dtype=np.int64)
    for look, nominal_p in zip(rule.looks, rule.nominal_p, strict=True):
        undecided = np.flatnonzero(direction == 0)
        sample = drawn[undecided, :look]
        claims = _rejects(sample, nominal_p) & _has_spread(drawn_kinds[undecided, :look])
        claiming = np.flatnonzero(claims)
        if look in BACKED_BY_SIGNS:
            claiming = claiming[_signs_agree(sample[claiming])]
        direction[undecided[claiming]] = np.sign(sample[claiming].mean(axis=1)).astype(np.int64)
    return direction


def _rejects(sample: Floats, nominal_p: float) -> Bools:
    """Return whether the t-test of each row of `sample` [resamples, pairs] rejects at `nominal_p`."""
    pairs = sample.shape[1]
    mean = sample.mean(axis=1)
    standard_error = sample.std(axis=1, ddof=1) / np.sqrt(pairs)
    bound = float(t_isf(nominal_p / 2.0, pairs - 1))
    return np.asarray((np.abs(mean) >= bound * standard_error) & (standard_error > 0.0))


def _has_spread(kinds: Ints) -> Bools:
    """Return whether enough differences of each row differ from its most frequent one; `kinds` [resamples, pairs]."""
    pairs = kinds.shape[1]
    most = np.zeros(len(kinds), dtype=np.int64)
    for kind in range(int(kinds.max(initial=0)) + 1):
        most = np.maximum(most, (kinds == kind).sum(axis=1))
    is_coarse = np.array([bool(rests_on_others(count, pairs)) for count in range(pairs + 1)])
    return np.asarray((most < pairs) & ~is_coarse[most])


def _signs_agree(sample: Floats) -> Bools:
    """Return whether the sign-flip test of each row of `sample` [resamples, pairs] rejects at alpha."""
    pairs = sample.shape[1]
    if not len(sample):
        return np.zeros(0, dtype=bool)
    if pairs <= _ENUMERATED:
        return np.asarray(signs_p(sample) <= ALPHA)
    signs = np.random.default_rng([_SEED, pairs]).choice((-1.0, 1.0), size=(pairs, _PATTERNS))
    sums = np.abs(sample @ signs)
    observed = np.abs(sample.sum(axis=1, keepdims=True))
    extreme = (sums >= observed * (1.0 - 1e-12)).sum(axis=1)
    return np.asarray((extreme + 1) / (_PATTERNS + 1) <= ALPHA)


def chance(differences: Floats, pairs: int, direction: float) -> float:
    """Return how often a plan of `pairs` pairs claims a difference in the given direction (its sign)."""
    claims = directions(differences, drawn_places(differences.size, pairs), rule_of(pairs))
    return float(np.mean(claims == np.sign(direction)))


def fewest_pairs(chance_with: Callable[[int], float], least_chance: float) -> int | None:
    """Return the smallest plan in which a correct claim has at least this chance; None if no plan tried has it."""
    return next((pairs for pairs in SIZES if chance_with(pairs) >= least_chance), None)
