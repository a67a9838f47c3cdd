"""Distribution functions, upper tails and inverses of Student's t (central and noncentral), normal, chi-squared and F.

The numbers equal those of scipy.stats to the bit (noncentral t: to 1e-12). They come from scipy.special alone, because
importing scipy.stats takes a second and would delay every launch. The first call imports scipy.special, unless `load`
has already imported it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

from numpy.typing import ArrayLike

_BISECTIONS = 60  # of an interval of about |t| + 20
_LARGEST_T = 1e4  # above, limits are proportional to t, and scipy's function has no value


def load() -> None:
    """Import scipy.special now, for a caller that must not import it later, when installed files may have changed."""
    _special()


def t_cdf(x: ArrayLike, df: ArrayLike) -> Any:
    """Return P(T <= x); T has Student's distribution with `df` degrees of freedom."""
    return _special().stdtr(df, x)


def t_sf(x: ArrayLike, df: ArrayLike) -> Any:
    """Return P(T > x); T has Student's distribution with `df` degrees of freedom."""
    return _special().stdtr(df, -_array(x))


def t_isf(p: ArrayLike, df: ArrayLike) -> Any:
    """Return the x with P(T > x) = p."""
    import numpy as np

    q = _array(p)
    inverse = -_special().stdtrit(df, p)
    above_zero = np.where(q == 1.0, -math.inf, inverse)
    return np.where(q == 0.0, math.inf, above_zero)  # scipy's inverse has the wrong sign at 0


def nct_sf(x: ArrayLike, df: ArrayLike, shift: ArrayLike) -> Any:
    """Return P(T > x); T has the noncentral t distribution with noncentrality `shift`."""
    import numpy as np

    probability_below = _special().nctdtr(df, shift, x)  # nan where it is too small for a float
    return np.where(np.isnan(probability_below) & (_array(shift) > _array(x)), 1.0, 1.0 - probability_below)


def nct_limits(t: float, df: int, level: float) -> tuple[float, float]:
    """Return the noncentralities between which an observed `t` with `df` degrees of freedom is likely, at `level`.

    At the lower limit, P(T >= t) is (1 - level) / 2; at the upper one, P(T <= t) is.
    """
    tail = (1.0 - level) / 2.0
    size = min(abs(t), _LARGEST_T)
    scale = 1.0  # of the limits at `size`
    if size:
        scale = abs(t) / size
    scale = math.copysign(scale, t)
    limit_at_tail = scale * _shift_at(size, df, tail)
    limit_at_other_tail = scale * _shift_at(size, df, 1.0 - tail)
    return min(limit_at_tail, limit_at_other_tail), max(limit_at_tail, limit_at_other_tail)


def _shift_at(t: float, df: int, probability_below: float) -> float:
    """Return the shift of a noncentral T with P(T <= t) = `probability_below`, by bisection; P falls as the shift
    grows.
    """
    cdf = _special().nctdtr
    low = -10.0
    high = t + 10.0
    while cdf(df, high, t) > probability_below:
        high += high - t
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if cdf(df, middle, t) > probability_below:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def binomial_ppf(p: float, n: int, share: float) -> int:
    """Return the least k with P(X <= k) >= p; X counts the successes in `n` trials, each with the chance `share`."""
    if share >= 1.0:  # scipy's function has no value
        return n
    cdf = _special().bdtr
    return bisect_left(range(n + 1), p, key=lambda k: float(cdf(k, n, share)))


def binomial_cdf(k: int, n: int, share: float) -> float:
    """Return P(X <= k); X counts the successes in `n` trials, each with the chance `share`."""
    return float(_special().bdtr(k, n, share))


def norm_sf(x: ArrayLike) -> Any:
    """Return P(Z > x); Z is standard normal."""
    return _special().ndtr(-_array(x))


def norm_isf(p: ArrayLike) -> Any:
    """Return the x with P(Z > x) = p."""
    return -_special().ndtri(p)


def chi2_ppf(p: ArrayLike, df: float) -> Any:
    """Return the x with P(X <= x) = p; X is chi-squared with `df` degrees of freedom."""
    return 2.0 * _special().gammaincinv(df / 2.0, p)


def chi2_isf(p: ArrayLike, df: float) -> Any:
    """Return the x with P(X > x) = p; X is chi-squared with `df` degrees of freedom."""
    return _special().chdtri(df, p)


def chi2_sf(x: ArrayLike, df: float) -> Any:
    """Return P(X > x); X is chi-squared with `df` degrees of freedom."""
    return _special().chdtrc(df, x)


def f_sf(x: ArrayLike, df_above: float, df_below: float) -> Any:
    """Return P(F > x); F is the ratio of two mean squares with these degrees of freedom."""
    return _special().fdtrc(df_above, df_below, x)


def f_ppf(p: ArrayLike, df_above: float, df_below: float) -> Any:
    """Return the x with P(F <= x) = p; F is the ratio of two mean squares with these degrees of freedom."""
    return _special().fdtri(df_above, df_below, p)


def _special() -> Any:
    from scipy import special

    return special


def _array(x: ArrayLike) -> Any:
    import numpy as np

    return np.asarray(x, dtype=np.float64)
