"""The spread of runs and of pairs in a finished experiment, to plan the next one with. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.analysis.evaluation_noise import noise_of_pairs
from esper_ab.analysis.observe import pairs_of
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Contrast, Design
from esper_ab.design.power_tables import Known, check_varied
from esper_ab.journal.fold import History
from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.floats import Floats
from esper_ab.stats.pair import Pair


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
        groups.setdefault(contrast.a, {}).update({pair.replicate: pair.a for pair in pairs})
        groups.setdefault(contrast.b, {}).update({pair.replicate: pair.b for pair in pairs})
        residuals.append(residual_sd(history.design, pairs))
    samples = [np.array(list(values.values())) for values in groups.values() if len(values) > 1]
    df = sum(sample.size - 1 for sample in samples)
    if not df:
        raise UsageError(f"--experiment {name}: estimating a spread needs at least two finished seeds; give --sd-run")
    square = math.fsum(float(np.sum((sample - sample.mean()) ** 2)) for sample in samples)
    sd = math.sqrt(square / df)
    noise = noise_of_pairs(history)
    known = check_varied(
        Known(
            source=f"{len(groups)} groups of {name}",
            sd=sd,
            df=df,
            noise=noise,
            unit=history.outcome.apart,
        )
    )
    pooled = sum(one_df for _, one_df in residuals)
    if pooled:
        sd_pairs = math.sqrt(math.fsum(one**2 * one_df for one, one_df in residuals) / pooled)
    else:
        sd_pairs = 0.0
    if not sd_pairs:
        return known
    rho = 1.0 - sd_pairs**2 / (2.0 * sd**2)
    return msgspec.structs.replace(
        known,
        df=_counted(df, np.full((len(samples), len(samples)), rho)),
        sd_pairs=sd_pairs,
        df_pairs=_counted(pooled, _shared_runs(history.design.comparisons)),
    )


def _shared_runs(contrasts: Sequence[Contrast]) -> Floats:
    """Return correlations of the differences of `contrasts`, [contrasts, contrasts]: half for each shared group."""
    names = sorted({name for one in contrasts for name in one.groups})
    signs = np.array([[float(name == one.a) - float(name == one.b) for name in names] for one in contrasts])
    return np.asarray(signs @ signs.T / 2.0)


def _counted(df: int, correlations: Floats) -> int:
    """Return the effective degrees of freedom of sums of squares that have `df` degrees of freedom together.

    `correlations`: the correlations of their values, [sums, sums].
    """
    count = len(correlations)
    off = float(np.sum(np.square(correlations))) - float(np.sum(np.square(np.diag(correlations))))
    return max(1, round(df * count / (count + off)))


def residual_sd(design: Design, pairs: Sequence[Pair]) -> tuple[float, int]:
    """Return the SD of pair differences that the design's test uses, and its degrees of freedom; (0.0, 0) if none."""
    positions = design.positions if design.adjusted else 1
    sides = [(pair.position_a, pair.position_b) for pair in pairs]
    found = adjusted_difference([pair.a for pair in pairs], [pair.b for pair in pairs], sides, positions)
    if found is None or found.sd is None:
        return (0.0, 0)
    return (found.sd, int(found.df))
