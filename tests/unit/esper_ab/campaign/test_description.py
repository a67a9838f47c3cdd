"""A plan in words: the chance of each verdict if the spread of runs is known, and none if nothing can be decided."""

from dataclasses import replace

import msgspec
import pytest
from support.journals.synthetic import Shape, Synthetic
from support.outcomes.csv_outcomes import scales
from support.plans import requests

from esper_ab.analysis.calibration import calibration_of
from esper_ab.campaign.campaign import Campaign, CampaignPlan, Part, PartPlan, PriorResults
from esper_ab.campaign.description import chances, describe, encode, power_line, whole_plan
from esper_ab.campaign.directory import write_campaign_files
from esper_ab.campaign.part_planning import plan_on
from esper_ab.contracts.settings import PPOSettings
from esper_ab.design.outcome_windows import WindowSpread
from esper_ab.journal.fold import fold
from esper_ab.launchers.inline import LAUNCHER
from esper_ab.readers.external_plan import make_external_plan, read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, read_joint
from esper_ab.settings.claim_table import Claim, remarks_on
from esper_ab.stats.curve_change import CurveChange
from esper_ab.verdict.analysis_plan import Rule

MACHINE = requests.machine()


def make_part(folder, run_sd, **changes):
    """Return a plan whose runs have this SD by a calibration."""
    asked = requests.experiment(**{"seeds": 6, **changes})
    plan, cost = plan_on(MACHINE, asked, folder.name, PriorResults())
    plan = msgspec.structs.replace(plan, run_sd=run_sd)
    return PartPlan(name="", asked=asked, machine=MACHINE, plan=plan, cost=cost, folder=folder, prior=PriorResults())


def with_calibration(part, change):
    """Return the plan with a calibration whose curves change by so much, and vary less than evaluations do."""
    history = fold(Synthetic(groups={"a": Shape(stream="a"), "b": Shape(stream="b")}).events())
    windows = (
        WindowSpread(outcome_over="evaluation", mean=70.0, sd=3.5),
        WindowSpread(outcome_over="last-third", mean=70.0, sd=1.5),
    )
    curve_change = None if change is None else CurveChange(runs=12, mean=change, low=change - 0.2, high=change + 0.2)
    calibration = calibration_of(history, 10, deterministic=True, margin_named=True)
    calibration = msgspec.structs.replace(calibration, windows=windows, curve_change=curve_change, noise=None)
    return replace(part, prior=PriorResults(calibration=calibration))


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


def test_a_plan_recommends_the_last_third_if_its_calibration_has_flat_curves(tmp_path):
    part = with_calibration(make_part(tmp_path, None), change=0.0)
    assert "Recommended: --outcome-over last-third, which needs" in power_line(part)
    assert "ecommended" not in " ".join(chances(part))


def test_a_plan_says_only_in_full_why_the_last_third_is_not_recommended(tmp_path):
    part = with_calibration(make_part(tmp_path, None), change=5.0)
    assert "ecommended" not in power_line(part)
    assert "Not recommended: --outcome-over last-third, because the curves of shaped" in " ".join(chances(part))


@pytest.mark.parametrize("part_of_run", ["last-third", "curve-mean"])
def test_a_plan_that_compares_training_gets_no_advice_on_windows(tmp_path, part_of_run):
    part = with_calibration(make_part(tmp_path, None, outcome_over=part_of_run), change=0.0)
    assert "ecommended" not in power_line(part) + " ".join(chances(part))


def test_a_calibration_written_before_curves_were_measured_gives_no_advice_on_windows(tmp_path):
    part = with_calibration(make_part(tmp_path, None), change=None)
    assert "ecommended" not in power_line(part) + " ".join(chances(part))


def test_an_open_ended_plan_says_its_price_whether_or_not_the_spread_is_known(tmp_path):
    prices = [power_line(make_part(tmp_path, run_sd, open_ended=True)) for run_sd in (None, 3.5)]
    assert "To find a difference of one run-to-run SD, --seeds auto needs" in prices[0]
    assert "To find a difference of the margin, --seeds auto needs" in prices[1]


def test_a_plan_of_five_seeds_has_no_chances(tmp_path):
    part = make_part(tmp_path, 3.5, seeds=5)
    assert chances(part) == []
    assert power_line(part) == ""


def test_the_whole_plan_of_six_groups_says_what_moderated_variances_would_save(tmp_path):
    groups = tuple(requests.group(name) for name in "abcdef")
    part = make_part(tmp_path, None, seeds=10, groups=groups)
    sentence = (
        "--variances moderated, which shares the variances of the 15 comparisons, would find the same differences"
    )
    assert sentence in " ".join(whole_plan(part).split())
    assert "--variances" not in power_line(part)
    unpaired = make_part(tmp_path, None, seeds=10, groups=groups, unpaired=True)
    assert "--variances" not in whole_plan(unpaired)


def described(part, claim):
    """Return the first lines of the plan of a campaign that has only this part."""
    campaign = Campaign(
        parts=(Part(name="", asked=part.asked),), output_dir=part.folder.parent, about=remarks_on(claim)
    )
    plan = CampaignPlan(campaign=campaign, directory=part.folder, generated="", parts=(part,), launcher=LAUNCHER)
    return describe(plan).splitlines()[:2]


def test_a_plan_begins_with_the_claim_that_it_decides_and_with_its_budget(tmp_path):
    part = make_part(tmp_path, None)
    claim = Claim(sentence="Rewards that are shaped train better policies.", core_minutes=20.0)
    first_line, second_line = described(part, claim)
    assert first_line == f"claim: {claim.sentence}"
    core_minutes = part.cost.duration_s * len(part.plan.lanes) / 60.0
    assert second_line == f"budget: 20 core minutes; the estimate of this plan is {core_minutes:.1f} at most"
    assert len(part.plan.lanes) > 1
    assert "budget" not in " ".join(described(part, Claim(sentence=claim.sentence)))
    assert "claim" not in " ".join(described(part, None))


def test_the_cost_beside_a_budget_counts_a_core_once_though_several_runs_share_it(tmp_path):
    part = make_part(tmp_path, None, placement="sequence", devices=("cpu:0",))
    assert len(part.plan.lanes) > 1
    _, budget_line = described(part, Claim(sentence="Rewards differ.", core_minutes=20.0))
    assert budget_line.endswith(f"the estimate of this plan is {part.cost.duration_s / 60.0:.1f} at most")


def joint_plan(folder, second_ppo):
    """Return the plan of two parts; `second_ppo`: settings of one of the two groups in both."""
    groups = (requests.group("a"), requests.group("b", ppo=second_ppo))
    tasks = ("one", "two")
    parts = tuple(
        replace(make_part(folder / task, None, groups=groups, rng_seed=seed), name=task)
        for seed, task in enumerate(tasks)
    )
    campaign = Campaign(parts=tuple(Part(name=part.name, asked=part.asked) for part in parts), output_dir=folder.parent)
    rule = make_external_plan(("a", "b"), tuple("012345"), scales(tasks=tasks), Rule())
    return CampaignPlan(
        campaign=campaign, directory=folder, generated="", parts=parts, launcher=LAUNCHER, over_all=rule
    )


def test_joint_plans_that_differ_in_one_setting_of_one_group_have_different_digests(tmp_path):
    plan, same_plan, other_plan = (joint_plan(tmp_path, PPOSettings(lr=lr)) for lr in (0.002, 0.002, 0.003))
    assert plan.over_all.digest == other_plan.over_all.digest
    assert plan.digest == same_plan.digest
    digests = {plan.digest, other_plan.digest, replace(plan, parts=plan.parts[::-1]).digest, plan.over_all.digest}
    assert len(digests) == 4
    assert f"\ndigest: {plan.digest}\n" in describe(plan)
    assert msgspec.json.decode(encode(plan))["digest"] == plan.digest


def test_the_digest_of_a_joint_plan_is_known_from_what_its_directory_holds(tmp_path):
    plan = joint_plan(tmp_path / "several", PPOSettings())
    plan.directory.mkdir()
    write_campaign_files(plan)
    assert read_joint(plan.directory).digest(read_plan(plan.directory / PLAN_NAME).digest) == plan.digest
