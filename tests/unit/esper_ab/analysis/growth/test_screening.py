"""The reward screening: every outcome with its reason."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from support import fake_plans
from support.journals import Shape, Synthetic

from esper_ab.analysis.analyse import Analysis, analyse
from esper_ab.contracts.settings import PPOSettings
from esper_ab.journal.events import ExperimentStarted, RunEvaluated
from esper_ab.journal.fold import fold

EXAMPLES = Path(__file__).resolve().parents[5] / "docs" / "examples"


def judged(**groups: Shape):
    """The screening of a synthetic experiment: `random` at 50 %, `wait` at 33 %, and these."""
    found = analysed(**groups).screening
    assert found is not None
    return {judgement.group: judgement for judgement in found.judgements}


def analysed(test: str = "t", **groups: Shape) -> Analysis:
    shapes = {
        "wait": Shape(accuracy=33.0, controller="wait"),
        "random": Shape(accuracy=50.0, controller="random", params=2000),
        **groups,
    }
    events = Synthetic(groups=shapes).events()
    plan = events[0].plan
    experiment = msgspec.structs.replace(plan.experiment, screening=True, control="random", untested=("wait",))
    design = fake_plans.plan(
        groups=tuple(shapes), cores=len(shapes), seeds=6, control="random", untested=("wait",)
    ).design
    design = msgspec.structs.replace(design, test=test)
    plan = msgspec.structs.replace(plan, experiment=experiment, design=design)
    started: ExperimentStarted = msgspec.structs.replace(events[0], plan=plan)
    return analyse(fold([started, *events[1:]]))


def test_a_reward_that_gains_is_continued_and_one_that_gains_nothing_is_stopped():
    judgements = judged(good=Shape(accuracy=75.0, params=800), bad=Shape(accuracy=40.0, params=800))
    good, bad = judgements["good"], judgements["bad"]
    assert good.decision == "continue", good
    assert good.criteria[0].passed is True
    assert good.criteria[3].name == "decisiveness"
    assert good.criteria[3].passed is True  # its entropy falls
    assert bad.decision == "stop", bad
    assert "bad is WORSE with respect to random" in bad.reason


def test_a_reward_that_gains_by_spending_more_is_revised():
    (judgement,) = judged(fat=Shape(accuracy=60.0, params=40_000)).values()
    assert judgement.criteria[0].passed is True
    assert judgement.criteria[1].passed is False
    assert (judgement.decision, "fails in efficiency" in judgement.reason) == ("revise", True)


def test_what_is_not_shown_is_revised():
    (judgement,) = judged(same=Shape(accuracy=50.6, params=800)).values()
    assert judgement.criteria[0].passed is None
    assert judgement.decision == "revise"
    assert "not shown to be better than random" in judgement.reason


@pytest.mark.parametrize(("greedy", "told"), [(20.0, True), (-20.0, True), (0.0, False)])
def test_a_judgement_of_sampled_actions_tells_of_greedy_ones_that_are_far_from_them(greedy, told):
    (judgement,) = judged(same=Shape(accuracy=50.6, greedy=greedy)).values()
    assert judgement.decision == "revise"
    assert ("its greedy actions reach" in judgement.reason) is told


def test_of_a_policy_that_is_not_to_learn_no_updates_are_asked_for():
    (judgement,) = judged(same=Shape(accuracy=50.6, greedy=20.0, ppo=PPOSettings(lr=0.0))).values()
    assert "its greedy actions reach" not in judgement.reason


def test_runs_that_were_not_trained_to_their_end_say_nothing_about_decisiveness():
    events = Synthetic(groups={"good": Shape(), "random": Shape(controller="random")}).events()
    events = [e for e in events if not (isinstance(e, RunEvaluated) and e.record.run.name == "good/5")]
    plan = events[0].plan
    experiment = msgspec.structs.replace(plan.experiment, screening=True, control="random")
    started = msgspec.structs.replace(events[0], plan=msgspec.structs.replace(plan, experiment=experiment))
    (judgement,) = analyse(fold([started, *events[1:]])).screening.judgements
    assert [criterion.runs for criterion in judgement.criteria[1:]] == [0, 5, 5]


def test_an_experiment_that_is_no_screening_has_none():
    assert analyse(fold(Synthetic().events())).screening is None


def test_the_example_asks_for_the_screening_that_is_kept_beside_it():
    files = EXAMPLES / "screening.toml", EXAMPLES / "screening-digits" / "experiment.toml"
    asked, kept = (tomllib.loads(file.read_text()) for file in files)
    assert asked["screening"] is True
    assert asked == {key: kept[key] for key in asked}
