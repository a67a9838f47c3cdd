"""Joint distribution of the adjusted paired t over successive interim looks, from the design alone, and its simulation.

Let V_k be the differences of the first n_k pairs with position effects projected out. V_k is a subspace of V_{k+1},
and the least squares of `adjusted_difference` is the one-sample t in V_k. After a rotation within each step from look
to look, a step adds one normal coordinate along tau's column and a chi-square for the other columns. So the
distribution depends on only two numbers per look: the information on tau and the degrees of freedom.

The moderated t of Smyth's model (`stats/moderated_variance.py`) is the same process with a chi-square more at the first
look: given a comparison's variance, d0 s0^2 divided by it is a chi-square with d0 degrees of freedom, as if d0 further
residuals were known from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.random import Generator

from esper_ab.design.counterbalance import Sides
from esper_ab.stats.design_matrix import design_matrix, estimable
from esper_ab.stats.floats import Floats

_NO_GAIN = 1e-9  # a gain of information below this is rounding


class TProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The looks that can test tau, with their replicates, information (in pairs of a balanced plan) and df of t."""

    looks: tuple[int, ...]
    information: tuple[float, ...]
    df: tuple[int, ...]


class Draws(msgspec.Struct, frozen=True, kw_only=True):
    """Standard draws, [looks, paths]: the normal coordinate and the chi-square that each look adds."""

    normal: Floats
    rest: Floats


def t_process(sides: Sides, positions: int, looks: Sequence[int], prior_df: int = 0) -> TProcess:
    """Compute the information and the df at each look.

    `sides` has the positions (of a, of b) in each replicate. `positions` is the number of possible positions (1: no
    adjustment). `looks` are ascending numbers of replicates. A look is left out if no degree of freedom remains or tau
    is aliased with position effects. `prior_df`: of moderated variances; 0: comparisons have their own.
    """
    kept_looks = []
    information = []
    df = []
    for look in looks:
        matrix = design_matrix(sides[:look], positions)
        df_left = look - int(np.linalg.matrix_rank(matrix))
        if estimable(matrix) and df_left >= 1:
            kept_looks.append(look)
            information.append(1.0 / float(np.linalg.pinv(matrix.T @ matrix)[0, 0]))
            df.append(df_left + prior_df)
    return TProcess(looks=tuple(kept_looks), information=tuple(information), df=tuple(df))


def draw(process: TProcess, paths: int, rng: Generator) -> Draws:
    """Draw the random numbers of `paths` experiments, before an effect and a scale are applied."""
    gains = _gains(process)
    dimensions = np.diff(np.asarray(process.df) + 1, prepend=0)
    dimensions = np.where(gains > 0.0, dimensions - 1, dimensions)  # one is drawn as `normal_draws`
    normal_draws = rng.standard_normal((len(process.looks), paths))
    chi_squares = np.zeros_like(normal_draws)
    for look, dimension in enumerate(dimensions):
        if dimension > 0:
            chi_squares[look] = rng.chisquare(dimension, paths)
    return Draws(normal=normal_draws, rest=chi_squares)


def t_values(process: TProcess, draws: Draws, effect: float = 0.0) -> Floats:
    """Return t for every look and path, [looks, paths], assuming that tau is `effect` standard deviations of a pair."""
    t = np.empty_like(draws.normal)
    for look, (weighted_sum, residual_square) in enumerate(_sums(process, draws, effect)):
        information = process.information[look]
        t[look] = weighted_sum * np.sqrt(process.df[look] / information / residual_square)
    return t


def means_and_sds(process: TProcess, draws: Draws, effect: float = 0.0) -> tuple[Floats, Floats]:
    """Return the estimates of tau and the SDs of residuals of the t values, each [looks, paths]."""
    means = np.empty_like(draws.normal)
    sds = np.empty_like(draws.normal)
    for look, (weighted_sum, residual_square) in enumerate(_sums(process, draws, effect)):
        means[look] = weighted_sum / process.information[look]
        sds[look] = np.sqrt(residual_square / process.df[look])
    return means, sds


def _sums(process: TProcess, draws: Draws, effect: float) -> Iterator[tuple[Floats, Floats]]:
    """Yield for every look the estimate of tau times its information, and the sum of squared residuals, by path."""
    weighted_sum = np.zeros(draws.normal.shape[1])
    square = np.zeros(draws.normal.shape[1])
    for look, (gain, information) in enumerate(zip(_gains(process), process.information, strict=True)):
        square += draws.rest[look]
        if gain > 0.0:
            value = draws.normal[look] + effect * np.sqrt(gain)
            weighted_sum += np.sqrt(gain) * value
            square += value * value
        yield weighted_sum, square - weighted_sum * weighted_sum / information


def _gains(process: TProcess) -> Floats:
    """Return the information that each look adds to the information at the previous look."""
    gains = np.diff(np.asarray(process.information), prepend=0.0)
    gains[gains < _NO_GAIN] = 0.0
    return gains
