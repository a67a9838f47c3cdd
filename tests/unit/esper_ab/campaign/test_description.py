"""A plan in words: the chance of each verdict if the spread of runs is known, and none if nothing can be decided."""

from dataclasses import replace

import msgspec
from support.plans import requests

from esper_ab.campaign.campaign import PartPlan, PriorResults
from esper_ab.campaign.description import chances, power_line, whole_plan
from esper_ab.campaign.part_planning import plan_on

MACHINE = requests.machine()


def make_part(folder, run_sd, **changes):
    """Return a plan whose runs have this SD by a calibration."""
    asked = requests.experiment(**{"seeds": 6, **changes})
    plan, cost = plan_on(MACHINE, asked, folder.name, PriorResults())
    plan = msgspec.structs.replace(plan, run_sd=run_sd)
    return PartPlan(name="", asked=asked, machine=MACHINE, plan=plan, cost=cost, folder=folder, prior=PriorResults())


def test_a_plan_with_a_known_spread_has_the_chance_of_each_verdict(tmp_path):
    part = make_part(tmp_path, 3.5)
    title, *rows = chances(part)
    assert title.startswith("Chance of each verdict by the true difference")
    assert [row.split()[0] for row in rows[1:]] == ["better", "worse", "smaller", "undecided", "seeds", "time"]
    assert "would probably stay undecided" in power_line(part)
    assert whole_plan(part).endswith("\n".join(rows))


def test_a_plan_with_an_unknown_spread_has_no_chances(tmp_path):
    part = make_part(tmp_path, None)
    assert chances(part) == []
    assert "would probably" not in power_line(part)


def test_a_plan_without_pairs_advises_no_number_of_seeds(tmp_path):
    part = make_part(tmp_path, 3.5)
    unpaired = msgspec.structs.replace(part.plan.experiment, unpaired=True)
    part_without_pairs = replace(part, plan=msgspec.structs.replace(part.plan, experiment=unpaired))
    assert chances(part_without_pairs) == []
    assert "would find it" not in power_line(part_without_pairs)


def test_a_plan_of_five_seeds_has_no_chances(tmp_path):
    part = make_part(tmp_path, 3.5, seeds=5)
    assert chances(part) == []
    assert power_line(part) == ""
