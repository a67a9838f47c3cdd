"""The spread that a gate is planned with, and its power in words."""

import pytest
from msgspec.structs import replace
from support.plans import fake_plans

from esper_ab.gate.fitting import PairsSpread, pass_rate, power_words, spread_of
from esper_ab.gate.measured import Measured

MEASURED = Measured(
    schema=1,
    subject="s",
    verdict="NOT WORSE",
    directory="experiments/gate-1",
    pairs=20,
    run_seconds=3.0,
    sd_of_differences=2.0,
    sd_of_base=5.0,
)
NOT_WORSE = fake_plans.plan(seeds=40, looks=(20, 40), claim="not-worse", control="a", margin=2.0).design


@pytest.mark.parametrize(
    ("changes", "sd"),
    [
        ({}, 2.0),
        ({"verdict": "WORSE"}, 5.0 * 2.0**0.5),  # its head is unlike others
        ({"sd_of_differences": None}, 5.0 * 2.0**0.5),
        ({"pairs": 5}, None),
        ({"sd_of_differences": None, "sd_of_base": None}, None),
    ],
)
def test_the_spread_is_that_of_comparable_pairs_else_of_base(changes, sd):
    spread = spread_of([replace(MEASURED, **changes)])
    assert spread == (None if sd is None else spread)
    if spread is not None:
        assert spread.sd == pytest.approx(sd)
        assert "gate-1" in spread.source


def test_the_newest_gate_counts():
    assert spread_of([MEASURED, replace(MEASURED, sd_of_differences=9.0)]).sd == 2.0


def test_the_power_grows_with_a_smaller_spread():
    rates = [pass_rate(NOT_WORSE, PairsSpread(sd=sd, df=9, source="here")) for sd in (20.0, 5.0, 1.0)]
    assert rates == sorted(rates)
    assert rates[0] < 0.2
    assert rates[-1] > 0.99


def test_the_power_is_said_for_known_and_for_unknown_spreads():
    known_words = power_words(NOT_WORSE, PairsSpread(sd=4.0, df=9, source="20 pairs of gate-1"))
    rate = round(100.0 * pass_rate(NOT_WORSE, PairsSpread(sd=4.0, df=9, source="")))
    assert f"equal to base passes with {rate} %" in known_words
    assert "by 20 pairs of gate-1" in known_words
    assert "passes with 80 % if" in power_words(NOT_WORSE, None)
    difference = fake_plans.plan(seeds=10, margin=2.0).design
    assert "better by 2" in power_words(difference, None)
