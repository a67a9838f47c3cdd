"""Laws of runs: each a function of a standard normal, so that runs of a replicate can correlate under any of them."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Quantile = Callable[[Floats], Floats]
_Z = np.linspace(-6, 6, 6001)
_WEIGHT = np.exp(-(_Z**2) / 2) / np.exp(-(_Z**2) / 2).sum()


def mixture(rate: float, depth: float, sd: float = 1.0) -> Quantile:
    """A share of runs lies lower by `depth`; all vary by `sd`."""
    x = np.linspace(-depth - 7 * sd, 7 * sd, 20_001)
    z = special.ndtri(np.clip(rate * special.ndtr((x + depth) / sd) + (1 - rate) * special.ndtr(x / sd), 1e-15, 1 - 1e-15))
    keep = np.concatenate([[True], np.diff(z) > 0])
    return lambda value: np.interp(value, z[keep], x[keep])


def success_rate(episodes: int, chance: float = 0.7) -> Quantile:
    """Successes in so many episodes, as a share."""
    steps = special.ndtri(stats.binom.cdf(np.arange(episodes), episodes, chance))
    return lambda value: np.searchsorted(steps, value) / episodes


def left_skew(skewness: float) -> Quantile:
    """A gamma law turned round."""
    shape = 4 / skewness**2
    table = -stats.gamma.ppf(special.ndtr(-_Z), shape)
    return lambda value: np.interp(value, _Z, table)


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
    "left skew 1": left_skew(1), "left skew 2": left_skew(2),
    "left skew 3.5": left_skew(3.5), "left skew 6": left_skew(6),
}  # fmt: skip


@cache
def _scale(shape: str) -> tuple[float, float]:
    x = SHAPES[shape](_Z)
    mean = float(x @ _WEIGHT)
    return mean, float(np.sqrt((x - mean) ** 2 @ _WEIGHT))


def latent(rng: np.random.Generator, size: tuple[int, int, int], correlation: float) -> Floats:
    """[experiments, groups, replicates] normals; a negative correlation is one between groups that alternate."""
    experiments, groups, replicates = size
    z = rng.standard_normal(size)
    if correlation:
        sign = np.where(np.arange(groups) % 2, np.sign(correlation), 1.0)[:, None]
        shared = rng.standard_normal((experiments, 1, replicates))
        z = np.sqrt(1 - abs(correlation)) * z + sign * np.sqrt(abs(correlation)) * shared
    return z


def runs(shape: str, z: Floats) -> Floats:
    """Outcomes with mean 0 and SD 1."""
    mean, sd = _scale(shape)
    return (SHAPES[shape](z) - mean) / sd


def ar1(rng: np.random.Generator, size: tuple[int, int, int], phi: float) -> Floats:
    """Normal outcomes of SD 1, each group an autoregression over replicates."""
    x = rng.standard_normal(size)
    for r in range(1, size[2]):
        x[..., r] = phi * x[..., r - 1] + np.sqrt(1 - phi**2) * x[..., r]
    return x
