"""The spread of runs and of pairs in a finished experiment, to plan the next one with. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.analysis.evaluation_noise import noise_of_pairs
from esper_ab.analysis.pairs import pairs_of
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Design
from esper_ab.design.power_tables import Known, check_varied
from esper_ab.journal.fold import History
from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.pair import Pair


def known_from_pairs(history: History, name: str) -> Known:
    """The spread within groups and of the pairs' differences in `history`, which messages call `name`.

    It comes from all compared pairs, never from the mean of their differences, and is pooled over groups and over
    comparisons by degrees of freedom. UsageError with fewer than two pairs.
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
        raise UsageError(f"--experiment {name}: a spread needs two finished replicates at least; give --sd-run")
    square = math.fsum(float(np.sum((sample - sample.mean()) ** 2)) for sample in samples)
    known = check_varied(Known(
        source=f"{len(groups)} groups of {name}", sd=math.sqrt(square / df), df=df, noise=noise_of_pairs(history),
        unit=history.outcome.apart,
    ))
    df_pairs = sum(one_df for _, one_df in residuals)
    sd_pairs = math.sqrt(math.fsum(sd**2 * one_df for sd, one_df in residuals) / df_pairs) if df_pairs else 0.0
    if not sd_pairs:
        return known
    return msgspec.structs.replace(known, sd_pairs=sd_pairs, df_pairs=df_pairs)


def residual_sd(design: Design, pairs: Sequence[Pair]) -> tuple[float, int]:
    """SD of the pairs' differences as the design's test sees them, and its degrees of freedom; 0.0, 0: none."""
    positions = design.positions if design.adjusted and design.test == "t" else 1
    sides = [(pair.position_a, pair.position_b) for pair in pairs]
    found = adjusted_difference([pair.a for pair in pairs], [pair.b for pair in pairs], sides, positions)
    return (0.0, 0) if found is None or found.sd is None else (found.sd, found.df)
