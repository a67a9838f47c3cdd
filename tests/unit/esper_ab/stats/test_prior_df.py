"""As how many degrees of freedom a common variance counts."""

import pytest

from esper_ab.stats.prior_df import MOST_PRIOR_DF, prior_df


@pytest.mark.parametrize(("variances", "df"), [(0, 0), (1, 0), (2, 1), (3, 2), (5, 4), (66, MOST_PRIOR_DF)])
def test_the_prior_counts_one_degree_less_than_there_are_variances_and_at_most_four(variances, df):
    assert prior_df(variances) == df
