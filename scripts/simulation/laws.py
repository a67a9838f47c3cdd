"""Learning curves of made-up runs, and the outcomes they come to.

A curve rises from 45 to 69.5 % in 100 episodes. Around it: a run effect (SD 3), an AR(1) series (phi 0.8, SD 2.5), and
what the law adds. The runs of one replicate share a part of the run effect, so that their outcomes correlate by
`rho`. The outcome is the mean of the last ten episodes; its law is known exactly, so it can be drawn without the
curve: `outcomes` and `curves(...)[..., -10:].mean(-1)` have the same law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from esper_ab.design import counterbalance

EPISODES, TAIL = 100, 10  # of a curve; of the outcome
START, RISE, TIME = 45.0, 25.0, 25.0  # percent, points, episodes: 45 + 25 (1 - exp(-e / 25)) ends at 69.5
PHI, AR_SD = 0.8, 2.5
RUN_SD = 3.0
COLLAPSES, DEPTH = 0.15, 20.0  # share of runs; points lost: down to where the curve began
DEVICE = 2.0  # points gained in position 1 of a block

Array = NDArray[np.float64]
TREND: Array = START + RISE * (1.0 - np.exp(-np.arange(EPISODES) / TIME))
# Var(mean of m) = SD^2 / m^2 (m + 2 sum_k (m - k) phi^k)
AR_SD_OF_TAIL = AR_SD / TAIL * math.sqrt(TAIL + 2.0 * sum((TAIL - k) * PHI**k for k in range(1, TAIL)))
OUTCOME_SD = math.hypot(RUN_SD, AR_SD_OF_TAIL)  # 3.52 points; d = 1 is this difference


@dataclass(frozen=True)
class Law:
    """How runs vary. `limited`: the limits on error and coverage hold for it."""

    name: str
    title: str
    skewed: bool = False  # run effect with skewness -2
    collapsing: Literal["none", "all", "last"] = "none"  # which groups lose runs
    twice: bool = False  # the last group has twice the SD
    depth: float = DEPTH  # of a collapse, points
    lanes: Literal["none", "alternate", "fixed"] = "none"  # the device effect, and who gets it
    limited: bool = True
    # of outcomes that are drawn without curves
    shape: Literal["", "t3", "lognormal", "ties", "ceiling"] = ""


LAWS = (
    Law("normal", "normal"),
    Law("skewed", "run effects with skewness -2", skewed=True),
    Law("collapses", "15 % of runs collapse by 20 points", collapsing="all"),
    Law("twice the SD", "B has twice the SD of A", twice=True),
    Law("device", "one lane gives 2 points more, sides alternate", lanes="alternate"),
)
FIXED_LANES = Law("A on lane 0", "one lane gives 2 points more, B always has it", lanes="fixed", limited=False)
EVERY = (*LAWS, FIXED_LANES)
# Outcomes only: of heavy tails, skewed, on the grid of 389 test images, and cut off half an SD above their middle
SHAPES = (
    Law("t3", "Student's t with 3 degrees of freedom", shape="t3"),
    Law("lognormal", "lognormal", shape="lognormal"),
    Law("ties", "normal, on a grid of 100/389 points", shape="ties"),
    Law("ceiling", "normal, cut off half an SD above the mean", shape="ceiling"),
)
NAMED = {law.name: law for law in (*EVERY, *SHAPES)}


def law_named(name: str) -> Law:
    """One of the above."""
    return NAMED[name]


def orders(groups: int, replicates: int) -> list[tuple[int, ...]]:
    """Group by position, for every replicate: those of a balanced plan on one set of lanes."""
    return [counterbalance.order(groups, replicate) for replicate in range(replicates)]


@dataclass(frozen=True)
class Size:
    """How many of what."""

    experiments: int
    replicates: int
    groups: int = 2


def outcomes(law: Law, rho: float, size: Size, rng: np.random.Generator) -> Array:
    """[experiments, groups, replicates], percent; every group has the same mean but for the device effect."""
    if law.shape:
        return _shaped(law, rho, size, rng)
    level, collapsed, scale = _runs(law, rho, size, rng)
    noise = rng.standard_normal(level.shape) * AR_SD_OF_TAIL * scale
    return np.asarray(TREND[-TAIL:].mean() + level + noise - law.depth * collapsed)


def _shaped(law: Law, rho: float, size: Size, rng: np.random.Generator) -> Array:
    """Outcomes with an SD of about OUTCOME_SD, made of normal ones that correlate by rho."""
    shape = (size.experiments, size.groups, size.replicates)
    z = math.sqrt(rho) * rng.standard_normal((size.experiments, 1, size.replicates))
    z = z + math.sqrt(1.0 - rho) * rng.standard_normal(shape)
    if law.shape == "t3":
        z = z / np.sqrt(rng.chisquare(3.0, shape))  # SD 1
    if law.shape == "lognormal":
        z = (np.exp(z) - math.exp(0.5)) / math.sqrt(math.exp(2.0) - math.exp(1.0))
    if law.shape == "ceiling":
        z = np.minimum(z, 0.5)
    values = TREND[-TAIL:].mean() + OUTCOME_SD * z
    return np.asarray(np.round(values * 3.89) / 3.89 if law.shape == "ties" else values)


def curves(law: Law, rho: float, size: Size, rng: np.random.Generator, episodes: int = EPISODES) -> Array:
    """[experiments, groups, replicates, episodes], percent: the last `episodes` of every curve.

    A collapse happens in the second half, before the last tenth.
    """
    level, collapsed, scale = _runs(law, rho, size, rng)
    series = np.empty((*level.shape, episodes))
    series[..., 0] = rng.standard_normal(level.shape)
    for episode in range(1, episodes):
        fresh = rng.standard_normal(level.shape) * math.sqrt(1.0 - PHI**2)
        series[..., episode] = PHI * series[..., episode - 1] + fresh
    onset = rng.integers(EPISODES // 2, EPISODES - TAIL, level.shape)
    late = np.arange(EPISODES - episodes, EPISODES) >= onset[..., None]
    noise = series * AR_SD * scale[..., None]
    return np.asarray(TREND[-episodes:] + level[..., None] + noise - law.depth * (collapsed[..., None] & late))


def _runs(law: Law, rho: float, size: Size, rng: np.random.Generator) -> tuple[Array, NDArray[np.bool_], Array]:
    """Level of every run (points; run effect, device, what makes means equal), whether it collapses, scale of groups.

    The share of the run effect's variance that a replicate's runs have in common is rho Var(outcome) / Var(run
    effect); what is collapsing has its own. In the laws ONE_SIDED rho is the correlation without the collapses.
    """
    shape = (size.experiments, size.groups, size.replicates)
    common = (size.experiments, 1, size.replicates)
    share = rho * (OUTCOME_SD / RUN_SD) ** 2
    if law.skewed:  # an exponential is the sum of independent gammas: one in common, one of its own
        level = 1.0 - rng.gamma(share, size=common) - rng.gamma(1.0 - share, size=shape)
    else:
        level = math.sqrt(share) * rng.standard_normal(common) + math.sqrt(1.0 - share) * rng.standard_normal(shape)
    scale = np.ones((1, size.groups, 1))
    if law.twice:
        scale[:, -1] = 2.0
    level = RUN_SD * scale * level
    collapsed = np.zeros(shape, dtype=bool)
    if law.collapsing != "none":
        together = rng.random(common) < rho  # both members collapse or neither: correlation rho
        collapsed = np.where(together, rng.random(common) < COLLAPSES, rng.random(shape) < COLLAPSES)
    if law.collapsing == "last":
        collapsed[:, :-1] = False
        level[:, -1] += COLLAPSES * law.depth
    if law.lanes != "none":
        level += DEVICE * _in_position_one(law, size)
    return level, collapsed, np.broadcast_to(scale, shape)


def _in_position_one(law: Law, size: Size) -> Array:
    """[groups, replicates]: 1.0 where the run has the lane that gives more."""
    if law.lanes == "fixed":
        return np.asarray(np.arange(size.groups)[:, None] == np.ones(size.replicates), dtype=np.float64)
    takers = [order[1] for order in orders(size.groups, size.replicates)]
    return np.asarray(np.arange(size.groups)[:, None] == np.array(takers), dtype=np.float64)
