"""Moderated variances (Smyth 2004): each variance of several comparisons is shrunk towards their common one.

The variance of a comparison, s^2 with df degrees of freedom, becomes (d0 s0^2 + df s^2) / (d0 + df), which has d0 + df.
In Smyth's model the true variances vary around s0^2 as those of an inverse chi-squared law with d0 degrees of freedom,
and then t is exactly Student's. Here d0 is fixed, and s0^2 is the mean of all variances. It is not the location that
Smyth's fit would choose, which lies below the mean, because variances of unequal groups would be shrunk too far:
docs/evidence/rates.md has the rates of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import UNSET

from esper_ab.stats.adjusted_difference import AdjustedDifference, PriorVariance
from esper_ab.stats.distributions import t_sf
from esper_ab.stats.floats import Floats
from esper_ab.stats.prior_df import prior_df


def common_variance(variances: Floats, df: Floats) -> Floats:
    """Return the mean [...] of `variances` [..., comparisons], weighted by their degrees of freedom."""
    return np.asarray((df * variances).sum(axis=-1) / df.sum(axis=-1))


def moderated_variance(variance: Floats, df: Floats, common: Floats, prior: float) -> Floats:
    """Return `variance` shrunk towards `common`, which counts as `prior` degrees of freedom."""
    return np.asarray((prior * common + df * variance) / (prior + df))


def prior_of(effects: Sequence[AdjustedDifference], most_df: int) -> PriorVariance | None:
    """Return the common variance of the effects that have a t; None if fewer than two have one.

    It has at most `most_df` degrees of freedom.
    """
    tested = [(effect.sd, effect.df) for effect in effects if effect.sd is not None and effect.t is not None]
    df = min(most_df, prior_df(len(tested)))
    if df < 1:
        return None
    sds, dfs = np.array(tested).T
    return PriorVariance(variance=float(common_variance(sds**2, dfs)), df=df)


def moderated(effect: AdjustedDifference, prior: PriorVariance) -> AdjustedDifference:
    """Return `effect` with the moderated t; its `sd` and the effects of positions stay its own.

    An effect without a t stays without one.
    """
    if effect.sd is None or effect.t is None or effect.prior is not UNSET:
        return effect
    variances = (np.asarray(effect.sd**2), np.asarray(effect.df), np.asarray(prior.variance))
    se = math.sqrt(float(moderated_variance(*variances, prior.df)) / effect.information)
    t = effect.mean / se
    df = effect.df + prior.df
    return msgspec.structs.replace(effect, se=se, t=t, df=df, p=float(2.0 * t_sf(abs(t), df)), prior=prior)
