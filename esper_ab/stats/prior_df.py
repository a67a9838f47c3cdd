"""As how many degrees of freedom the common variance of several comparisons counts. Without numpy, for plans."""

from __future__ import annotations

MOST_PRIOR_DF = 4


def prior_df(variances: int) -> int:
    """Return the prior degrees of freedom that a number of variances may give to each other.

    It is one less than their number, and at most MOST_PRIOR_DF: the mean of two or three variances is itself too
    uncertain to count as more (docs/evidence/rates.md).
    """
    return max(0, min(MOST_PRIOR_DF, variances - 1))
