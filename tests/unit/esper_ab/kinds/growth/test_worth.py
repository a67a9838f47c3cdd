"""Groups that are not clearly better than guessing or the bare host are not called EQUIVALENT."""

import pytest
from support.journals.audited_journals import findings, planned, replace
from support.journals.ready_journals import planted_effect, three_groups, without_evaluations
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.analyse import analyse
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.kinds.growth.worth import gains_per_kparam, kept_share
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.text import render_text
from esper_ab.verdict.requirement import Requirement, holds
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


# Gains per parameter and shares of kept seed modules.


def gains_per_parameter(events):
    history = fold(events)
    return gains_per_kparam(history, outcomes(history))


def test_the_gain_per_parameter_needs_a_group_that_never_grows() -> None:
    assert set(gains_per_parameter(planted_effect()).values()) == {None}
    by_run = outcomes(fold(three_groups()))
    gains = gains_per_parameter(three_groups())
    shaped_outcomes = by_run["shaped/2"]
    wait = by_run["wait/2"]
    assert gains["shaped/2"] == pytest.approx(
        (shaped_outcomes.evaluated - wait.evaluated) / (shaped_outcomes.measures["params_added"] / 1000)
    )
    assert gains["wait/2"] is None


def test_the_share_of_kept_seed_modules_needs_seed_modules() -> None:
    by_run = outcomes(fold(three_groups()))
    fossilized, pruned_count = (by_run["shaped/2"].measures[name] for name in ("fossilized", "pruned"))
    assert kept_share(by_run["shaped/2"]) == pytest.approx(fossilized / (fossilized + pruned_count))
    assert kept_share(by_run["wait/2"]) is None
    assert kept_share(outcomes(fold(without_evaluations(three_groups())))["shaped/2"]) is None
