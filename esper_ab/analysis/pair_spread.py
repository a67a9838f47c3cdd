"""The spread of runs and of pairs in a finished experiment, to plan the next one with. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import UNSET

from esper_ab.analysis.evaluation_noise import noise_of_pairs
from esper_ab.analysis.observe import pairs_of
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Contrast, Design
from esper_ab.design.power_tables import Known, check_varied
from esper_ab.design.shape_risk import ShapeRisk, shape_risk
from esper_ab.journal.fold import History
from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.floats import Floats
from esper_ab.stats.pair import Pairs


def known_from_pairs(history: History, name: str) -> Known:
    """Return the SD of runs within a group, and the SD of pair differences, as seen in `history`.

    Both measure variation around a mean; how far the groups' means differ does not enter. Sums of squares are pooled by
    degrees of freedom, over groups and over comparisons. Groups that share randomness vary together, and comparisons
    share runs. This lowers the degrees of freedom (Satterthwaite 1946, for dependent sums of squares).

    `name`: what messages call the history. Raises UsageError if there are fewer than two pairs, or if all runs are
    equal.
    """
    groups: dict[str, dict[int, float]] = {}
    residuals = []
    for contrast in history.design.comparisons:
        pairs = pairs_of(history, contrast)
        outcomes_a = groups.setdefault(contrast.a, {})
        outcomes_b = groups.setdefault(contrast.b, {})
        for pair in pairs:
            outcomes_a[pair.replicate] = pair.a
            outcomes_b[pair.replicate] = pair.b
        residuals.append(residual_sd(history.design, pairs))
    samples = [np.array(list(values.values())) for values in groups.values() if len(values) > 1]
    df = sum(sample.size - 1 for sample in samples)
    if not df:
        raise UsageError(f"--experiment {name}: estimating a spread needs at least two finished seeds; give --sd-run")
    squares = math.fsum(_squares_around_mean(sample) for sample in samples)
    sd = math.sqrt(squares / df)
    known_spread = check_varied(
        Known(
            source=f"{len(groups)} groups of {name}",
            sd=sd,
            df=df,
            noise=noise_of_pairs(history),
            unit=history.outcome.apart,
        )
    )
    sd_pairs, df_pairs = _pooled(residuals)
    if not sd_pairs:
        return known_spread
    rho = 1.0 - sd_pairs**2 / (2.0 * sd**2)
    between_groups = np.full((len(samples), len(samples)), rho)
    between_contrasts = _shared_runs(history.design.comparisons)
    return msgspec.structs.replace(
        known_spread,
        df=_counted(df, between_groups),
        sd_pairs=sd_pairs,
        df_pairs=_counted(df_pairs, between_contrasts),
        shape_risk=_largest_risk(history) or UNSET,
    )


def _largest_risk(history: History) -> ShapeRisk | None:
    """Return what the shape of differences does to the error rate, in the comparison where it raises it most."""
    planned_seeds = len(history.blocks)
    risks = [
        shape_risk(pairs_of(history, contrast).differences, planned_seeds) for contrast in history.design.comparisons
    ]
    raised_risks = [risk for risk in risks if risk is not None]
    return max(raised_risks, key=lambda risk: risk.rate, default=None)


def _squares_around_mean(values: Floats) -> float:
    return float(np.sum((values - values.mean()) ** 2))


def _pooled(residuals: Sequence[tuple[float, int]]) -> tuple[float, int]:
    """Pool standard deviations by their degrees of freedom; (0.0, 0) if there are none."""
    df = sum(df_of_pair for _, df_of_pair in residuals)
    if not df:
        return 0.0, 0
    squares = math.fsum(sd**2 * df_of_pair for sd, df_of_pair in residuals)
    return math.sqrt(squares / df), df


def _shared_runs(contrasts: Sequence[Contrast]) -> Floats:
    """Return correlations of the differences of `contrasts`, [contrasts, contrasts]: half for each shared group."""
    names = sorted({contrast.a for contrast in contrasts} | {contrast.b for contrast in contrasts})
    signs = np.zeros((len(contrasts), len(names)))
    for row, contrast in enumerate(contrasts):
        signs[row, names.index(contrast.a)] = 1.0
        signs[row, names.index(contrast.b)] = -1.0
    return np.asarray(signs @ signs.T / 2.0)


def _counted(df: int, correlations: Floats) -> int:
    """Return the effective degrees of freedom of sums of squares that have `df` degrees of freedom together.

    `correlations`: the correlations of their values, [sums, sums].
    """
    count = len(correlations)
    all_squares = float(np.sum(np.square(correlations)))
    diagonal = float(np.sum(np.square(np.diag(correlations))))
    squares_off = all_squares - diagonal
    return max(1, round(df * count / (count + squares_off)))


def residual_sd(design: Design, pairs: Pairs) -> tuple[float, int]:
    """Return the SD of pair differences that the design's test uses, and its degrees of freedom; (0.0, 0) if none."""
    positions = design.positions if design.adjusted else 1
    effect = adjusted_difference(pairs.a, pairs.b, pairs.sides, positions)
    if effect is None or effect.sd is None:
        return (0.0, 0)
    return (effect.sd, int(effect.df))
