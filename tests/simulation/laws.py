"""Laws of runs: each a function of a standard normal, so that runs of a replicate can correlate under any of them."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Quantile = Callable[[Floats], Floats]
_Z = np.linspace(-6, 6, 6001)
_WEIGHT = np.exp(-(_Z**2) / 2) / np.exp(-(_Z**2) / 2).sum()


def mixture(rate: float, depth: float, sd: float = 1.0) -> Quantile:
    """A share of runs lies lower by `depth`; all vary by `sd`."""
    x = np.linspace(-depth - 7 * sd, 7 * sd, 20_001)
    share_below = rate * special.ndtr((x + depth) / sd) + (1 - rate) * special.ndtr(x / sd)
    z = special.ndtri(np.clip(share_below, 1e-15, 1 - 1e-15))
    is_rising = np.concatenate([[True], np.diff(z) > 0])
    return lambda value: np.interp(value, z[is_rising], x[is_rising])


def success_rate(episodes: int, chance: float = 0.7) -> Quantile:
    """Successes in so many episodes, as a share."""
    steps = special.ndtri(stats.binom.cdf(np.arange(episodes), episodes, chance))
    return lambda value: np.searchsorted(steps, value) / episodes


@cache
def _t3() -> Floats:
    return np.asarray(stats.t.ppf(special.ndtr(_Z), 3))


SHAPES: dict[str, Quantile] = {
    "normal": lambda z: z,
    "t with 3 degrees of freedom": lambda z: np.interp(z, _Z, _t3()),
    "lognormal": lambda z: np.exp(z),
    "15 % of runs collapse": mixture(0.15, 6),
    "4 % of runs collapse": mixture(0.04, 10),
    "learns or not": mixture(0.5, 10),
    "success in 10 episodes": success_rate(10),
    "success in 50 episodes": success_rate(50),
    "ceiling": lambda z: np.minimum(z, 0.5),
    "uniform": special.ndtr,
}


@cache
def _scale(shape: str) -> tuple[float, float]:
    x = SHAPES[shape](_Z)
    mean = float(x @ _WEIGHT)
    return mean, float(np.sqrt((x - mean) ** 2 @ _WEIGHT))


def runs(shape: str, z: Floats) -> Floats:
    """Outcomes with mean 0 and SD 1."""
    mean, sd = _scale(shape)
    return (SHAPES[shape](z) - mean) / sd


def latent(rng: np.random.Generator, size: tuple[int, int, int], correlation: float) -> Floats:
    """[experiments, groups, replicates] normals; a negative correlation is one between groups that alternate."""
    z = rng.standard_normal(size)
    if correlation:
        sign = np.where(np.arange(size[1]) % 2, np.sign(correlation), 1.0)[:, None]
        shared_part = rng.standard_normal((size[0], 1, size[2]))
        z = np.sqrt(1 - abs(correlation)) * z + sign * np.sqrt(abs(correlation)) * shared_part
    return z


def collapsing(
    rng: np.random.Generator, size: tuple[int, int, int], correlation: float, rate: float, depth: float
) -> tuple[Floats, Bools]:
    """Normal outcomes, every group with a mean of 0, and which runs collapsed: none of the last group."""
    x = latent(rng, size, correlation)
    hit = rng.random(size) < rate
    hit[:, -1] = False
    x[:, :-1] += depth * (rate - hit[:, :-1])
    return x, hit
