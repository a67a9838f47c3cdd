"""A plan that may exceed the machine needs a confirmation; other plans need none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import requests

from esper_ab.campaign.campaign import Campaign, CampaignPlan, PartPlan, PriorResults
from esper_ab.campaign.confirming import confirm, excesses
from esper_ab.contracts.errors import UsageError
from esper_ab.health.processor import Room
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.plan.estimate import Estimate

DAY_S = 24 * 3600.0
GIB = 2**30


def cost(duration_s, memory_bytes):
    return Estimate(duration_s=duration_s, start_up_s=1.0, step_s=1.0, memory_bytes=memory_bytes, basis="guessed")


@given(st.floats(0, 10 * DAY_S), st.integers(0, 64 * GIB), st.integers(1, 64 * GIB), st.sampled_from(["", "limit x"]))
def test_a_plan_that_exceeds_a_day_or_the_memory_is_reported(duration_s, needed_bytes, room, limit):
    reports = excesses(cost(duration_s, needed_bytes), Room(room, limit))
    assert len(reports) == (duration_s > DAY_S) + (needed_bytes > room)
    assert any("days" in report for report in reports) == (duration_s > DAY_S)
    assert any("GiB are available by limit x" in report for report in reports) == (bool(limit) and needed_bytes > room)


def test_an_unknown_amount_of_memory_causes_no_warning():
    assert excesses(cost(1.0, 64 * GIB), Room(0, "")) == ()
    assert len(excesses(cost(1.0, 64 * GIB), Room(0, "limit x"))) == 1, "a limit that is used up leaves nothing"


def test_an_excessive_plan_needs_the_yes_flag_without_a_terminal(capsys):
    asked_experiment = requests.experiment()
    this_machine = requests.machine()
    directory = Path("x")
    part = PartPlan(
        name="",
        asked=asked_experiment,
        machine=this_machine,
        plan=requests.planned(asked_experiment, this_machine),
        cost=cost(1.0, 1 << 60),
        folder=directory,
        prior=PriorResults(),
    )
    plan = CampaignPlan(
        campaign=Campaign(parts=(), output_dir=Path()),
        directory=directory,
        generated="",
        parts=(part,),
        launcher=InlineLauncher(),
    )
    with pytest.raises(UsageError, match=r"^it is estimated to need .*: --yes starts it anyway$"):
        confirm(plan, yes=False, dry_run=False)
    for yes in (True, False):
        confirm(plan, yes=yes, dry_run=not yes)
    assert capsys.readouterr().err.count("warning: it is estimated to need ") == 3
