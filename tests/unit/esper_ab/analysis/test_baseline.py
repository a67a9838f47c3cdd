"""Groups that are not clearly apart from guessing or from a group that learns nothing are not called EQUIVALENT."""

import pytest
from support.journals.audited_journals import findings, planned, replace
from support.journals.ready_journals import with_lost_runs, write
from support.journals.synthetic import Shape, Synthetic
from support.outcomes.csv_outcomes import scales

from esper_ab.analysis.analyse import analyse
from esper_ab.analysis.baseline import missing_baseline
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.journal.fold import fold
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.readers.joint import judge_directory
from esper_ab.readers.joint_directory import Joint, JointPart
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.text import render_text
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.requirement import Requirement, holds
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import Verdict

NEAR = {"shaped": Shape(accuracy=60.0), "simplified": Shape(accuracy=60.0, mode="simplified")}


def make_events(groups=NEAR, chance=None, replicates=16, margin=4.0, **rule):
    """Return an experiment without differences, with a margin wide enough to show EQUIVALENT."""
    events = Synthetic(groups=groups, replicates=replicates, episodes=1, n_envs=2).events()

    def change_plan(plan):
        return replace(plan, chance=chance, design=replace(plan.design, margin=margin, **rule))

    return planned(events, change_plan)


def baselines(events):
    return [finding for finding in findings(events) if finding.kind == "baseline"]


def verdicts(events):
    return {
        (comparison.question.a, comparison.question.b): comparison.verdict
        for comparison in analyse(fold(events)).comparisons
    }


def test_groups_at_chance_level_are_not_called_equivalent():
    above_chance = make_events(chance=10.0)
    near_chance = make_events(chance=58.0)
    assert set(verdicts(above_chance).values()) == {Verdict.EQUIVALENT}
    (finding,) = baselines(near_chance)
    assert (finding.weight, finding.groups) == ("caps equivalence", ("shaped", "simplified"))
    reason = (
        "it has not been shown that shaped and simplified are more than the margin of 4 points above guessing (58 %)"
    )
    assert reason in finding.sentence
    history = fold(near_chance)
    (result,) = analyse(history).comparisons
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.EQUIVALENT)
    assert result.capped_by == (finding.sentence,)
    assert "not clearly better than those of a group that learns nothing" in result.headline
    for relation in ("equivalent-to", "not-worse-than"):
        assert not holds(Requirement(left="shaped", relation=relation, right="simplified"), result)
    assert "allows no EQUIVALENT" in render_text(experiment_report(content(history)), in_full=True)


@pytest.mark.parametrize(
    ("events", "findings"),
    [
        (make_events(chance=10.0), 0),
        (make_events(chance=58.0, replicates=14), 0),
        (make_events(chance=58.0, replicates=15), 1),
        # With a wide margin two groups could be equivalent although one guesses.
        (make_events(NEAR | {"simplified": Shape(accuracy=64.0, mode="simplified")}, chance=55.0), 1),
    ],
)
def test_a_group_at_chance_level_is_reported_if_equivalence_could_be_claimed(events, findings):
    start = "EQUIVALENT cannot be claimed: it has not been shown that shaped "
    assert [finding.sentence[: len(start)] for finding in baselines(events)] == [start] * findings


@pytest.mark.parametrize(
    ("bare_accuracy", "is_reported"), [(60.0, True), (57.0, True), (63.0, True), (33.0, False), (90.0, False)]
)
def test_groups_as_good_as_the_bare_host_are_not_called_equivalent(bare_accuracy, is_reported):
    """The difference may have either sign, and must exceed the margin; comparisons with the bare host are exempt."""
    events = make_events(NEAR | {"wait": Shape(accuracy=bare_accuracy, controller="wait")})
    reports = baselines(events)
    assert [finding.groups for finding in reports] == ([("shaped", "simplified")] if is_reported else [])
    assert all("from wait, which never grows" in finding.sentence for finding in reports)
    expected = Verdict.INCONCLUSIVE if is_reported else Verdict.EQUIVALENT
    assert verdicts(events)["shaped", "simplified"] is expected


def test_a_decided_difference_is_not_capped_by_a_group_at_chance_level():
    groups = {"shaped": Shape(accuracy=70.0), "simplified": Shape(accuracy=60.0, mode="simplified")}
    events = make_events(groups, chance=60.0)
    assert len(baselines(events)) == 1
    assert set(verdicts(events).values()) == {Verdict.BETTER}
    (result,) = analyse(fold(events)).comparisons
    assert result.capped_by == ()
    assert holds(Requirement(left="shaped", relation="better-than", right="simplified"), result)
    for chance, verdict in ((60.0, Verdict.BETTER), (10.0, Verdict.BETTER_BELOW_MARGIN)):
        wide_events = make_events(groups, chance=chance, margin=20.0, early_stop=False)
        assert set(verdicts(wide_events).values()) == {verdict}


# Gymnasium, where outcomes have no unit and a group may act at random.


RETURN = Measure(name="return", label="return", better="higher")


def gymnasium_events(random_outcome=60.0, groups=NEAR, better="higher", **rule):
    """Return an experiment without differences on a Gymnasium task; `random_outcome` None: no group acts at random."""
    if random_outcome is not None:
        groups = groups | {"random": Shape(accuracy=random_outcome, controller="random")}
    synthetic = Synthetic(
        groups=groups,
        replicates=16,
        episodes=1,
        n_envs=2,
        kind="gymnasium",
        measures=TaskMeasures(outcome=replace(RETURN, better=better)),
    )
    return planned(synthetic.events(), lambda plan: replace(plan, design=replace(plan.design, margin=4.0, **rule)))


@pytest.mark.parametrize("better", ["higher", "lower"])
@pytest.mark.parametrize(
    ("random_outcome", "is_reported"), [(60.0, True), (57.0, True), (63.0, True), (33.0, False), (90.0, False)]
)
def test_groups_as_good_as_random_actions_are_not_called_equivalent(random_outcome, is_reported, better):
    """The difference may have either sign; comparisons with the group that acts at random are exempt."""
    events = gymnasium_events(random_outcome, better=better)
    reports = baselines(events)
    assert [finding.groups for finding in reports] == ([("shaped", "simplified")] if is_reported else [])
    assert all("more than the margin of 4 from random, which acts at random" in report.sentence for report in reports)
    assert "points" not in "".join(report.sentence for report in reports)
    expected = Verdict.INCONCLUSIVE if is_reported else Verdict.EQUIVALENT
    assert verdicts(events)["shaped", "simplified"] is expected


def test_a_small_difference_between_groups_near_random_actions_is_not_called_below_the_margin():
    groups = {"shaped": Shape(accuracy=62.0), "simplified": Shape(accuracy=60.0, mode="simplified")}
    for random_outcome, verdict in ((60.0, Verdict.BETTER), (30.0, Verdict.BETTER_BELOW_MARGIN)):
        events = gymnasium_events(random_outcome, groups, early_stop=False)
        assert verdicts(events)["shaped", "simplified"] is verdict


def test_a_baseline_whose_runs_are_lost_shows_nothing():
    events = with_lost_runs(gymnasium_events(30.0), {f"random/{seed}": "dropped_pair" for seed in range(15)})
    (finding,) = [finding for finding in baselines(events) if finding.groups == ("shaped", "simplified")]
    assert "shaped shares too few seeds with it; simplified shares too few seeds with it" in finding.sentence


def test_nothing_is_known_of_a_gymnasium_task_without_a_group_that_acts_at_random():
    events = gymnasium_events(None)
    assert baselines(events) == []
    assert verdicts(events)["shaped", "simplified"] is Verdict.EQUIVALENT
    assert missing_baseline(fold(events)) == "random"
    assert missing_baseline(fold(gymnasium_events())) == ""
    assert missing_baseline(fold(make_events())) == "wait"
    assert missing_baseline(fold(make_events(chance=10.0))) == ""


def test_a_part_near_random_actions_caps_the_answer_on_its_task_and_on_the_mean(tmp_path):
    parts = {"learned": gymnasium_events(30.0), "not learned": gymnasium_events(60.0)}
    for name, events in parts.items():
        write(tmp_path / name, events)
    groups = (*NEAR, "random")
    plan = make_external_plan(groups, tuple(map(str, range(16))), scales(4.0, tasks=tuple(parts)), Rule())
    joint_experiment = Joint(
        parts=tuple(JointPart(name=name, folder=name, digest="0" * 64) for name in parts), scores={}
    )
    result = judge_directory(tmp_path, joint_experiment, plan)
    both_learn = {
        comparison.question.task: comparison
        for comparison in result.judged.comparisons
        if "random" not in (comparison.question.a, comparison.question.b)
    }
    assert both_learn["learned"].verdict is Verdict.EQUIVALENT
    for task in ("not learned", MEAN):
        assert (both_learn[task].verdict, both_learn[task].unaudited) == (Verdict.INCONCLUSIVE, Verdict.EQUIVALENT)
