"""How much the learning curves of runs still change over a part of training, with an interval over runs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.stats.distributions import t_isf
from esper_ab.stats.floats import Floats, floats

LEVEL = 0.9  # confidence of the interval: both of its ends err in 5 %, as in a test of equivalence
_LEAST_POINTS = 2  # of a curve, so that a line can be fitted


class CurveChange(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over runs of the change from the first to the last point of the line fitted to each curve."""

    runs: int
    mean: float  # in the unit of the outcome; positive: outcomes grow
    low: float  # t interval of the mean at LEVEL; runs are independent, the points of a curve are not
    high: float


def curve_change(curves: Sequence[Sequence[float]]) -> CurveChange | None:
    """Fit a line to each curve by least squares; NaN points are left out.

    Curves with fewer than two points that are not NaN are left out. Return None for fewer than two other curves.
    """
    changes = [_change(curve) for curve in map(floats, curves) if np.isfinite(curve).sum() >= _LEAST_POINTS]
    if len(changes) < 2:
        return None
    values = np.array(changes)
    mean = float(values.mean())
    standard_error = float(values.std(ddof=1)) / values.size**0.5
    half_width = float(t_isf((1.0 - LEVEL) / 2.0, values.size - 1)) * standard_error
    return CurveChange(runs=values.size, mean=mean, low=mean - half_width, high=mean + half_width)


def _change(curve: Floats) -> float:
    """Return the slope of the line that fits a curve, times its steps."""
    known_points = np.flatnonzero(np.isfinite(curve))
    steps = known_points - known_points.mean()
    slope = float(steps @ curve[known_points]) / float(steps @ steps)
    return slope * (curve.size - 1)
