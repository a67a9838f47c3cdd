"""Simulates streams of candidates: an agent that proposes, and loops that decide.

Of the fresh ideas 5 % are real. The agent adapts: half of its candidates resemble the one that looked best among its
last ten, and have the same true effect. A run's standard deviation is 1, and runs of a pair correlate by 0.5, so the
differences within pairs have an SD of 1. Where a loop uses the same seeds again, candidates that resemble each other
also have correlated luck.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from esper_ab.stats.bounded_mean import log_evidence as betting_evidence  # noqa: E402
from esper_ab.stats.distributions import t_isf, t_sf  # noqa: E402
from esper_ab.stats.one_sided_looks import OneSidedTest  # noqa: E402
from esper_ab.stats.one_sided_signs import one_sided_signs_p, smallest_p  # noqa: E402

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALPHA = 0.05
CANDIDATES = 200
REAL = 0.05  # of the fresh ideas
RESEMBLING = 0.5  # of the candidates
MEMORY = 10  # candidates among which the agent looks for the best
LIKENESS = 0.7  # correlation of the luck of a candidate with that of the one it resembles, on the same seeds
LOOKS = (4, 8, 14, 20)
MEASURED = 6  # runs of an incumbent after it has won
RANGE = 4.0  # of differences, for the betting test; in their SDs
STREAMS = 1_000
RNG_SEED = 67


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_normal(shape)


def t3(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_t(3, shape) / math.sqrt(3.0)


def lognormal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.asarray((np.exp(rng.standard_normal(shape)) - math.exp(0.5)) / math.sqrt((math.e - 1.0) * math.e))


def collapsing(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """15 % of runs collapse."""
    noise = 0.1 * rng.standard_normal(shape) - (rng.random(shape) < 0.15) + 0.15
    return np.asarray(noise / math.sqrt(0.01 + 0.15 * 0.85))


def learning_or_not(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Half of the runs learn, and no other noise."""
    return np.asarray(2.0 * (rng.random(shape) < 0.5) - 1.0)


def rarely_failing(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """One run in 20 fails, which lowers the mean to that of runs that vary less and never fail."""
    return np.asarray((0.05 - (rng.random(shape) < 0.05)) / math.sqrt(0.05 * 0.95) + 0.1 * rng.standard_normal(shape))


def occasionally_failing(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """One run in 20 falls by 3 SDs, which lowers the mean to that of runs that do not fail."""
    return np.asarray(rng.standard_normal(shape) + 3.0 * (0.05 - (rng.random(shape) < 0.05)))


def steady(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.asarray(0.1 * rng.standard_normal(shape))


Law = Callable[[np.random.Generator, tuple[int, ...]], Floats]
LAWS: dict[str, Law] = {
    "normal": normal,
    "t with 3 degrees of freedom": t3,
    "lognormal": lognormal,
    "15 % of runs collapse": collapsing,
    "learns or not": learning_or_not,
}


@dataclass(frozen=True, kw_only=True)
class World:
    """What candidates are like."""

    effect: float = 1.5  # of a real improvement, in SDs
    real: float = REAL
    harmful: float = 0.5  # share of the ideas without an improvement that make things worse; others change nothing
    law: Law = normal
    candidate_law: Law | None = None  # of candidates, if it is another one
    adaptive: bool = True


Levels = Callable[[int, Floats, Floats], Floats]  # number, discoveries, spent share of alpha -> levels


def e_lond(spread: float) -> Levels:
    def levels(number: int, discoveries: Floats, spent: Floats) -> Floats:
        return ALPHA * _weight(number, spread) * (discoveries + 1.0)

    return levels


def spending(spread: float) -> Levels:
    """Alpha spending: the chance of any false discovery is at most alpha."""

    def levels(number: int, discoveries: Floats, spent: Floats) -> Floats:
        return np.full_like(discoveries, ALPHA * _weight(number, spread))

    return levels


def e_lord(share: float) -> Levels:
    """A constant share of what is left, for each candidate."""

    def levels(number: int, discoveries: Floats, spent: Floats) -> Floats:
        return np.asarray(share * (ALPHA - spent) * (discoveries + 1.0))

    return levels


def bonferroni(number: int, discoveries: Floats, spent: Floats) -> Floats:
    return np.full_like(discoveries, ALPHA / CANDIDATES)


def each_at_alpha(number: int, discoveries: Floats, spent: Floats) -> Floats:
    return np.full_like(discoveries, ALPHA)


def _weight(number: int, spread: float) -> float:
    return (spread + 1.0) / ((number + spread) * (number + spread + 1.0))


Test = Callable[[Floats, Floats, tuple[int, ...]], tuple[Bools, NDArray[np.int64]]]
# differences [streams, pairs], levels [streams], looks -> accepted, pairs used


def staged(differences: Floats, levels: Floats, looks: tuple[int, ...], *, signs: bool = True) -> tuple[Bools, NDArray]:
    """The rule of the package (stats/one_sided_looks.py), for many streams at once."""
    open_mask = np.ones(levels.size, dtype=bool)
    accepted = np.zeros(levels.size, dtype=bool)
    pairs = np.zeros(levels.size, dtype=np.int64)
    shares = {look: OneSidedTest(looks=looks, margin=0.0, level=1.0, alpha=ALPHA).bound(look) for look in looks}
    for look in looks:
        mean, se, t = _t(differences[:, :look])
        bounds = levels * shares[look]
        pairs[open_mask] = look
        crossing = open_mask & (t_sf(t, look - 1) <= bounds) & (bounds > 0.0)
        for row in np.flatnonzero(crossing) if signs else ():
            if _needs_signs(differences[row, :look], bounds[row]):
                crossing[row] = one_sided_signs_p(differences[row, :look]) <= bounds[row]
        accepted |= crossing
        fortunate = (mean + se) / (se * math.sqrt(look / looks[-1]))
        hopeless = t_sf(fortunate, looks[-1] - 1) > levels * shares[looks[-1]]
        open_mask &= ~crossing & ~hopeless
    return accepted, pairs


def _needs_signs(differences: Floats, bound: float) -> bool:
    sizes = np.abs(differences)
    distinct = np.unique(np.round(sizes / max(float(sizes.max()), 1e-300), 9)).size
    return smallest_p(differences.size) <= bound or 2 * distinct <= differences.size


def anytime(differences: Floats, levels: Floats, looks: tuple[int, ...]) -> tuple[Bools, NDArray]:
    """The e-value of the anytime-valid t at each look, with the same kind of stop."""

    def log_e(t: Floats, pairs: int) -> Floats:
        r = 1.0 / (1.0 + pairs)
        ratio = np.log1p(t**2 / (pairs - 1)) - np.log1p(r * t**2 / (pairs - 1))
        return np.asarray(0.5 * math.log(r) + pairs / 2.0 * ratio)

    return _by_evidence(differences, levels, looks, lambda d: np.where(_t(d)[2] > 0.0, log_e(_t(d)[2], d.shape[1]), -1))


def betting(differences: Floats, levels: Floats, looks: tuple[int, ...]) -> tuple[Bools, NDArray]:
    """The evidence for any shape, with the declared range."""
    return _by_evidence(differences, levels, looks, lambda d: betting_evidence(np.clip(d, -RANGE, RANGE), RANGE))


def _by_evidence(
    differences: Floats, levels: Floats, looks: tuple[int, ...], log_e: Callable[[Floats], Floats]
) -> tuple[Bools, NDArray]:
    open_mask = np.ones(levels.size, dtype=bool)
    accepted = np.zeros(levels.size, dtype=bool)
    pairs = np.zeros(levels.size, dtype=np.int64)
    for look in looks:
        d = differences[:, :look]
        pairs[open_mask] = look
        crossing = open_mask & (log_e(d) >= -np.log(levels))
        accepted |= crossing
        mean, se, _ = _t(d)
        fortunate = np.tile(d + se[:, None], (1, math.ceil(looks[-1] / look)))[:, : looks[-1]]
        open_mask &= ~crossing & (log_e(fortunate) >= -np.log(levels)) & (mean + se > 0.0)
    return accepted, pairs


def t_alone(differences: Floats, levels: Floats, looks: tuple[int, ...]) -> tuple[Bools, NDArray]:
    """One t-test, after the last look's pairs."""
    _, _, t = _t(differences[:, : looks[-1]])
    return t >= t_isf(levels, looks[-1] - 1), np.full(levels.size, looks[-1])


def mean_alone(differences: Floats, levels: Floats, looks: tuple[int, ...]) -> tuple[Bools, NDArray]:
    """Keep if higher."""
    return differences[:, : looks[-1]].mean(axis=1) > 0.0, np.full(levels.size, looks[-1])


def _t(d: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean, standard error and t of differences [streams, pairs]."""
    mean = d.mean(axis=1)
    se = np.maximum(d.std(axis=1, ddof=1) / math.sqrt(d.shape[1]), 1e-12)
    return mean, se, mean / se


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A way to decide on candidates."""

    levels: Levels
    test: Test
    looks: tuple[int, ...] = LOOKS
    fresh: bool = True  # seeds for every candidate; if not, all are tried on the same, and runs of incumbents are kept
    kept_incumbent: bool = False  # fresh seeds for candidates, but the incumbent is trained once, on seeds of its own
    measured: int = MEASURED


@dataclass
class Ended:
    """What many streams came to; arrays have a number per stream."""

    false: Floats
    true: Floats
    ideas: Floats  # real candidates that were tried
    runs: Floats
    value: Floats  # true value of the last incumbent
    claimed: Floats
    claimed_se: Floats

    @property
    def false_share(self) -> Floats:
        return np.asarray(self.false / np.maximum(self.false + self.true, 1.0))

    @property
    def error(self) -> Floats:
        """Return how far the claimed value is from the true one, in its standard errors."""
        return np.asarray((self.claimed - self.value) / self.claimed_se)


@dataclass
class _Incumbent:
    """The incumbents of many streams."""

    value: Floats
    total: Floats  # of its runs that count for the claimed value
    count: Floats
    kept: Floats  # [streams, pairs]: luck on the seeds that are used again
    discoveries: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.discoveries = np.zeros_like(self.value)


def simulate(loop: Loop, world: World, streams: int = 0, candidates: int = CANDIDATES) -> Ended:
    """Let an agent propose candidates in each of many streams."""
    streams = streams or STREAMS
    rng = np.random.default_rng([RNG_SEED, round(100 * world.effect), round(1000 * world.real)])
    pairs = loop.looks[-1]
    luck = world.law(rng, (streams, pairs)) * math.sqrt(0.5)
    measured = world.law(rng, (streams, max(loop.measured, 1)))
    incumbent = _Incumbent(np.zeros(streams), measured.sum(axis=1), np.full(streams, float(measured.shape[1])), luck)
    if not loop.fresh:
        incumbent.total, incumbent.count = luck.sum(axis=1), np.full(streams, float(pairs))
    zeros = np.zeros(streams)
    ended = Ended(*(zeros.copy() for _ in range(7)))
    agent = _Agent(world, rng, streams, pairs)
    spent = zeros.copy()
    for number in range(1, candidates + 1):
        effect, candidate_luck = agent.propose()
        levels = loop.levels(number, incumbent.discoveries, spent)
        spent = spent + levels / (incumbent.discoveries + 1.0)
        base = incumbent.kept if loop.kept_incumbent or not loop.fresh else _luck(world, rng, (streams, pairs))
        if loop.fresh:
            candidate_luck = _luck(world, rng, (streams, pairs), is_candidate=True)
        differences = effect[:, None] + candidate_luck - base
        accepted, used = loop.test(differences, levels, loop.looks)
        agent.remember(effect, candidate_luck, differences, used, accepted)
        is_real = effect > 0.0
        ended.true += accepted & is_real
        ended.false += accepted & ~is_real
        ended.ideas += is_real
        ended.runs += used if loop.kept_incumbent or not loop.fresh else 2 * used
        _update(incumbent, loop, world, rng, _Tried(effect, candidate_luck, base, used, accepted))
        ended.runs += loop.measured * accepted if loop.fresh else 0
    ended.value = incumbent.value
    ended.claimed = incumbent.total / incumbent.count
    ended.claimed_se = 1.0 / np.sqrt(incumbent.count)
    return ended


def _luck(world: World, rng: np.random.Generator, shape: tuple[int, ...], *, is_candidate: bool = False) -> Floats:
    """The part of a run's outcome that the other run of its pair does not share."""
    law = world.candidate_law if is_candidate and world.candidate_law is not None else world.law
    return np.asarray(law(rng, shape) * math.sqrt(0.5))


@dataclass(frozen=True)
class _Tried:
    """One candidate of every stream."""

    effect: Floats
    luck: Floats
    base: Floats  # luck of the incumbent's runs
    used: NDArray[np.int64]
    accepted: Bools


def _update(incumbent: _Incumbent, loop: Loop, world: World, rng: np.random.Generator, tried: _Tried) -> None:
    """Replace the incumbents that lost, and add to what is known of the others."""
    streams, pairs = tried.luck.shape
    accepted = tried.accepted
    if not loop.fresh:  # the score that made it win is its claimed value
        incumbent.kept = np.where(accepted[:, None], tried.luck, incumbent.kept)
        incumbent.value = incumbent.value + np.where(accepted, tried.effect, 0.0)
        incumbent.total = (incumbent.value[:, None] + incumbent.kept).sum(axis=1)
        incumbent.discoveries += accepted
        return
    shared = world.law(rng, (streams, pairs)) * math.sqrt(0.5)
    is_used = np.arange(pairs) < tried.used[:, None]
    in_pairs = np.where(is_used, incumbent.value[:, None] + tried.base + shared, 0.0).sum(axis=1)
    if not loop.kept_incumbent:
        incumbent.total = incumbent.total + in_pairs
        incumbent.count = incumbent.count + tried.used
    incumbent.value = incumbent.value + np.where(accepted, tried.effect, 0.0)
    measured = incumbent.value[:, None] + world.law(rng, (streams, loop.measured))
    incumbent.total = np.where(accepted, measured.sum(axis=1), incumbent.total)
    incumbent.count = np.where(accepted, float(loop.measured), incumbent.count)
    incumbent.kept = np.where(accepted[:, None], _luck(world, rng, (streams, pairs)), incumbent.kept)
    incumbent.discoveries += accepted


class _Agent:
    """Proposes candidates, half of which resemble the best-looking of the last few that were not accepted."""

    def __init__(self, world: World, rng: np.random.Generator, streams: int, pairs: int) -> None:
        self._world = world
        self._rng = rng
        self._shape = (streams, pairs)
        self._effects = np.zeros((MEMORY, streams))
        self._lucks = np.zeros((MEMORY, streams, pairs))
        self._looks = np.full((MEMORY, streams), -np.inf)
        self._next = 0

    def propose(self) -> tuple[Floats, Floats]:
        """Return the true effects on the incumbents, and the luck on the seeds that are used again."""
        streams, _ = self._shape
        world = self._world
        is_real = self._rng.random(streams) < world.real
        harm = np.where(self._rng.random(streams) < world.harmful, np.abs(self._rng.standard_normal(streams)), 0.0)
        effect = np.where(is_real, world.effect, -harm)
        luck = _luck(world, self._rng, self._shape)
        best = self._looks.argmax(axis=0)
        columns = np.arange(streams)
        is_known = np.isfinite(self._looks[best, columns])
        again = (self._rng.random(streams) < RESEMBLING) & is_known & world.adaptive
        likeness = LIKENESS * self._lucks[best, columns] + math.sqrt(1.0 - LIKENESS**2) * luck
        return (
            np.where(again, self._effects[best, columns], effect),
            np.where(again[:, None], likeness, luck),
        )

    def remember(self, effect: Floats, luck: Floats, differences: Floats, used: NDArray, accepted: Bools) -> None:
        is_used = np.arange(self._shape[1]) < used[:, None]
        mean = np.where(is_used, differences, 0.0).sum(axis=1) / used
        slot = self._next % MEMORY
        self._effects[slot], self._lucks[slot] = effect, luck
        self._looks[slot] = np.where(accepted, -np.inf, mean)
        self._looks[:, accepted] = -np.inf  # against a new incumbent, old candidates look like nothing
        self._next += 1
