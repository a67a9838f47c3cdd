"""The exact interval of a proportion, by Clopper and Pearson."""

from __future__ import annotations

from esper_ab.stats.distributions import f_ppf


def share_limits(count: int, n: int, missed_share: float) -> tuple[float, float]:
    """Return the exact limits, at the level 1 - `missed_share`, of a share of which `count` > 0 of `n` > count were
    seen.

    Clopper & Pearson (1934), Biometrika 26, 404-413.
    """
    other_count = n - count
    f_low = float(f_ppf(missed_share / 2.0, 2 * count, 2 * (other_count + 1)))
    f_high = float(f_ppf(1.0 - missed_share / 2.0, 2 * (count + 1), 2 * other_count))
    low = 1.0 / (1.0 + (other_count + 1) / (count * f_low))
    high = 1.0 / (1.0 + other_count / ((count + 1) * f_high))
    return low, high
