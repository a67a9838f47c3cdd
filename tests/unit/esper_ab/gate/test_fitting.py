"""The spread that a gate is planned with, and its power in words."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from support.plans import fake_plans

from esper_ab.contracts.errors import UsageError
from esper_ab.gate.budget import Cost
from esper_ab.gate.fitting import PairsSpread, cost_of, pass_rate, power_words, spread_of
from esper_ab.gate.measured import Measured
from esper_ab.gate.question import GateQuestion
from esper_ab.plan.estimate import Estimate

MEASURED = Measured(schema=1, subject="s", directory="experiments/gate-1", pairs=20, run_seconds=3.0, sd_of_base=5.0)
NOT_WORSE = fake_plans.plan(seeds=40, looks=(20, 40), claim="not-worse", control="a", margin=2.0).design


PART = SimpleNamespace(offers=None)  # of a gate without a folder of kept runs


def test_the_spread_is_that_of_uncorrelated_runs_of_base():
    spread = spread_of(PART, [MEASURED])
    assert (spread.sd, spread.df) == (pytest.approx(5.0 * 2.0**0.5), 19)
    assert spread.source == "the runs of base in 20 pairs of gate-1"
    assert spread.most_sd > spread.sd


@pytest.mark.parametrize("changes", [{"pairs": 5}, {"sd_of_base": None}])
def test_few_runs_and_runs_that_do_not_vary_show_no_spread(changes):
    assert spread_of(PART, [replace(MEASURED, **changes)]) is None


def test_the_gate_with_most_pairs_counts_and_of_several_the_newest():
    older = [replace(MEASURED, sd_of_base=9.0), replace(MEASURED, pairs=6, sd_of_base=1.0)]
    assert spread_of(PART, [MEASURED, *older]).sd == spread_of(PART, [older[1], MEASURED]).sd == 5.0 * 2.0**0.5


def part_with(shortened=""):
    """Return the part of a planned gate on two cores, whose rehearsed runs took 4 s."""
    estimate = Estimate(duration_s=45.0, start_up_s=5.0, step_s=4.0, memory_bytes=0, basis="")
    facts = SimpleNamespace(point_s=3.0, evaluate_s=1.0, shortened=shortened)
    plan = fake_plans.plan(seeds=10, episodes=1)
    return SimpleNamespace(plan=plan, cost=estimate, machine=SimpleNamespace(trainer=facts), offers=None)


QUESTION = GateQuestion(train="train.py:train", better="higher", margin=2, minutes=3)


def test_a_pair_takes_as_long_as_the_file_says_else_as_earlier_gates_measured_else_as_rehearsed():
    assert cost_of(part_with(), QUESTION, []) == Cost(start_s=5.0, wave_s=4.0, at_once=1)
    assert cost_of(part_with(), QUESTION, [MEASURED]).wave_s == 3.0
    told_question = GateQuestion(train="train.py:train", better="higher", margin=2, minutes=3, run_seconds=8.0)
    assert cost_of(part_with(), told_question, [MEASURED]).wave_s == 8.0


def test_a_shortened_rehearsal_tells_no_duration():
    with pytest.raises(UsageError, match=r"shortened by steps=1.*run_seconds = SECONDS"):
        cost_of(part_with("steps=1"), QUESTION, [])
    assert cost_of(part_with("steps=1"), QUESTION, [MEASURED]).wave_s == 3.0


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
