"""Which directory an experiment gets: two launches in the same second both get one, whoever is faster."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support.outcomes.csv_outcomes import scales
from support.plans import requests

from esper_ab.campaign.campaign import Campaign, CampaignPlan, PartPlan, PriorResults
from esper_ab.campaign.description import encode
from esper_ab.campaign.directory import claim
from esper_ab.campaign.part_planning import plan_on
from esper_ab.contracts.errors import UsageError
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.settings.parts import Part
from esper_ab.verdict.analysis_plan import Rule, make_plan

MACHINE = requests.machine()
ASKED = requests.experiment(seeds=1)


def ready(directory, generated="synthetic-1"):
    prior = PriorResults()
    plan, cost = plan_on(MACHINE, ASKED, directory.name, prior)
    part = PartPlan(name="", asked=ASKED, machine=MACHINE, plan=plan, cost=cost, folder=directory, prior=prior)
    campaign = Campaign(parts=(Part(name="", asked=ASKED),), output_dir=directory.parent)
    return CampaignPlan(
        campaign=campaign, directory=directory, generated=generated, parts=(part,), launcher=InlineLauncher()
    )


def claimed(plan):
    with claim(plan) as now:
        return now


def test_the_first_gets_the_name_and_the_others_a_suffix(tmp_path, capsys):
    found = [claimed(ready(tmp_path / "runs" / "synthetic-1")) for _ in range(3)]
    assert [one.directory.name for one in found] == ["synthetic-1", "synthetic-1-2", "synthetic-1-3"]
    plans = [one.parts[0].plan for one in found]
    assert plans[1].experiment.name == "synthetic-1-2"
    assert plans[1].digest == plans[0].digest
    assert plans[1] == plan_on(MACHINE, ASKED, "synthetic-1-2", PriorResults())[0]  # made again, not altered
    first, second = capsys.readouterr().err.splitlines()
    assert "synthetic-1 has just been taken by another experiment; this one uses" in first
    assert second.endswith("synthetic-1-3")


def test_many_at_the_same_time_get_different_names(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: claimed(ready(tmp_path / "synthetic-1")), range(8)))
    assert len({one.directory for one in found}) == 8


def test_a_name_that_was_asked_for_is_never_changed(tmp_path):
    asked = ready(tmp_path, generated="")
    assert claimed(asked) is asked


def test_a_plan_below_a_folder_that_is_no_utf_8_has_its_json(tmp_path):
    there = tmp_path / os.fsdecode(b"\xff") / "lab"
    assert json.loads(encode(ready(there)))["experiment_dir"] == str(there)


class WithoutResources(InlineLauncher):
    def reserve(self, lanes):
        raise UsageError("no resources")


def test_a_directory_is_not_created_if_resources_are_not_available(tmp_path):
    for generated in ("", "synthetic-1"):
        plan = replace(ready(tmp_path / "synthetic-1", generated), launcher=WithoutResources())
        with pytest.raises(UsageError, match="no resources"), claim(plan):
            pass
    assert list(tmp_path.iterdir()) == []


def test_parts_move_with_a_directory_whose_generated_name_is_taken(tmp_path):
    plan = ready(tmp_path / "synthetic-1")
    (part,) = plan.parts
    parts = (replace(part, name="synthetic", folder=tmp_path / "synthetic-1" / "synthetic"),)
    plan = replace(plan, parts=parts, over_all=make_plan(plan.groups, ("0", "1"), scales(1.0, ("synthetic",)), Rule()))
    (tmp_path / "synthetic-1").mkdir()
    moved = claimed(plan)
    assert moved.directory == tmp_path / "synthetic-1-2"
    assert [one.folder for one in moved.parts] == [tmp_path / "synthetic-1-2" / "synthetic"]
    assert moved.parts[0].plan == part.plan
