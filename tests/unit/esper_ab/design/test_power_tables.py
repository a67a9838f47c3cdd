"""Which spreads of pairs an answer is given for."""

from __future__ import annotations

import pytest

from esper_ab.design.power import RunSpread, assumed, observed
from esper_ab.design.power_tables import RHO, Known, spreads

SUPPOSED = tuple(assumed(RunSpread(sd=3.5, df=9), rho) for rho in RHO)


@pytest.mark.parametrize(
    ("seen", "first"),
    [
        ({"sd_pairs": 4.0, "df_pairs": 5}, (observed(3.5, 4.0, 5),)),
        ({"sd_pairs": 4.0}, ()),
        ({"df_pairs": 5}, ()),
        ({}, ()),
    ],
)
def test_the_pairs_that_were_seen_come_before_the_correlations_that_are_supposed(seen, first):
    assert spreads(Known(source="given", sd=3.5, df=9, **seen), RHO) == (*first, *SUPPOSED)
