"""The analysis plan of external runs: its stops for futility."""

from esper_ab.design.design import futility_of
from esper_ab.verdict.analysis_plan import Rule, design_over
from esper_ab.verdict.scale import OF_MEAN


def test_futility_stops_follow_from_a_declared_power():
    looks = (8, 12)
    plain_design, stopping_design = (
        design_over(("a", "b"), 12, (OF_MEAN,), Rule(looks=looks, futility=p)) for p in (0.0, 0.8)
    )
    assert plain_design.futility is None
    assert stopping_design.futility == futility_of(0.8, ((0, 1),) * 12, 1, looks)
    assert 0.0 < stopping_design.futility.nominal_p[0] < 0.5
