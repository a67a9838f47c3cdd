"""Directories of experiments: two launches in the same second get different ones."""

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


def plan_in(directory, generated_name="synthetic-1"):
    prior_results = PriorResults()
    plan, cost = plan_on(MACHINE, ASKED, directory.name, prior_results)
    part = PartPlan(name="", asked=ASKED, machine=MACHINE, plan=plan, cost=cost, folder=directory, prior=prior_results)
    campaign = Campaign(parts=(Part(name="", asked=ASKED),), output_dir=directory.parent)
    return CampaignPlan(
        campaign=campaign, directory=directory, generated=generated_name, parts=(part,), launcher=InlineLauncher()
    )


def claim_directory(plan):
    with claim(plan) as claimed_plan:
        return claimed_plan


def test_experiments_started_in_the_same_second_get_a_suffix(tmp_path, capsys):
    claimed_plans = [claim_directory(plan_in(tmp_path / "runs" / "synthetic-1")) for _ in range(3)]
    assert [plan.directory.name for plan in claimed_plans] == ["synthetic-1", "synthetic-1-2", "synthetic-1-3"]
    plans = [plan.parts[0].plan for plan in claimed_plans]
    assert plans[1].experiment.name == "synthetic-1-2"
    assert plans[1].digest == plans[0].digest
    assert plans[1] == plan_on(MACHINE, ASKED, "synthetic-1-2", PriorResults())[0]  # planned anew, not altered
    first_line, second_line = capsys.readouterr().err.splitlines()
    assert "synthetic-1 has just been taken by another experiment; this one uses" in first_line
    assert second_line.endswith("synthetic-1-3")


def test_simultaneous_experiments_get_different_names(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        claimed_plans = list(pool.map(lambda _: claim_directory(plan_in(tmp_path / "synthetic-1")), range(8)))
    assert len({plan.directory for plan in claimed_plans}) == 8


def test_a_requested_name_is_never_changed(tmp_path):
    plan = plan_in(tmp_path, generated_name="")
    assert claim_directory(plan) is plan


def test_a_plan_in_a_folder_with_an_undecodable_name_can_be_encoded(tmp_path):
    directory = tmp_path / os.fsdecode(b"\xff") / "lab"
    assert json.loads(encode(plan_in(directory)))["experiment_dir"] == str(directory)


class WithoutResources(InlineLauncher):
    def reserve(self, lanes):
        raise UsageError("no resources")


def test_a_directory_is_not_created_if_resources_are_unavailable(tmp_path):
    for generated_name in ("", "synthetic-1"):
        plan = replace(plan_in(tmp_path / "synthetic-1", generated_name), launcher=WithoutResources())
        with pytest.raises(UsageError, match="no resources"), claim(plan):
            pass
    assert list(tmp_path.iterdir()) == []


def test_parts_move_with_a_renamed_joint_directory(tmp_path):
    plan = plan_in(tmp_path / "synthetic-1")
    (part,) = plan.parts
    parts = (replace(part, name="synthetic", folder=tmp_path / "synthetic-1" / "synthetic"),)
    plan = replace(plan, parts=parts, over_all=make_plan(plan.groups, ("0", "1"), scales(1.0, ("synthetic",)), Rule()))
    (tmp_path / "synthetic-1").mkdir()
    moved_plan = claim_directory(plan)
    assert moved_plan.directory == tmp_path / "synthetic-1-2"
    assert [moved_part.folder for moved_part in moved_plan.parts] == [tmp_path / "synthetic-1-2" / "synthetic"]
    assert moved_plan.parts[0].plan == part.plan
