"""Groups that do not stand clear of guessing, or of the bare host, support no EQUIVALENT."""

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


def journal(groups=NEAR, chance=None, replicates=16, margin=4.0, **rule):
    """An experiment in which nothing differs, with its margin wide enough to show that."""
    made = Synthetic(groups=groups, replicates=replicates, episodes=1, n_envs=2).events()

    def known(plan):
        return replace(plan, chance=chance, design=replace(plan.design, margin=margin, **rule))

    return planned(made, known)


def baselines(events):
    return [finding for finding in findings(events) if finding.kind == "baseline"]


def verdicts(events):
    return {(one.question.a, one.question.b): one.verdict for one in analyse(fold(events)).comparisons}


def test_groups_that_guess_are_not_equivalent():
    free = journal(chance=10.0)
    bound = journal(chance=58.0)
    assert set(verdicts(free).values()) == {Verdict.EQUIVALENT}
    (finding,) = baselines(bound)
    assert (finding.weight, finding.groups) == ("caps equivalence", ("shaped", "simplified"))
    said = "it has not been shown that shaped and simplified are more than the margin of 4 points above guessing (58 %)"
    assert said in finding.sentence
    history = fold(bound)
    (result,) = analyse(history).comparisons
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.EQUIVALENT)
    assert result.capped_by == (finding.sentence,)
    assert "not clearly better than those of a group that learns nothing" in result.headline
    for relation in ("equivalent-to", "not-worse-than"):
        assert not holds(Requirement(left="shaped", relation=relation, right="simplified"), result)
    assert "allows no EQUIVALENT" in render_text(experiment_report(content(history)), whole=True)


@pytest.mark.parametrize(
    ("events", "findings"),
    [
        (journal(chance=10.0), 0),
        (journal(chance=58.0, replicates=14), 0),
        (journal(chance=58.0, replicates=15), 1),
        # A wide margin makes two groups equivalent of which one guesses.
        (journal(NEAR | {"simplified": Shape(accuracy=64.0, mode="simplified")}, chance=55.0), 1),
    ],
)
def test_one_group_that_guesses_is_enough_and_nothing_is_said_before_an_equivalence_could_be(events, findings):
    start = "EQUIVALENT cannot be claimed: it has not been shown that shaped "
    assert [finding.sentence[: len(start)] for finding in baselines(events)] == [start] * findings


@pytest.mark.parametrize(("bare", "said"), [(60.0, True), (57.0, True), (63.0, True), (33.0, False), (90.0, False)])
def test_groups_that_end_where_the_bare_host_does_are_not_equivalent(bare, said):
    """From either side, and only by more than the margin; a comparison with the bare host asks about just this."""
    events = journal(NEAR | {"wait": Shape(accuracy=bare, controller="wait")})
    found = baselines(events)
    assert [finding.groups for finding in found] == ([("shaped", "simplified")] if said else [])
    assert all("from wait, which never grows" in finding.sentence for finding in found)
    expected = Verdict.INCONCLUSIVE if said else Verdict.EQUIVALENT
    assert verdicts(events)["shaped", "simplified"] is expected


def test_a_difference_that_was_found_stays_found():
    groups = {"shaped": Shape(accuracy=70.0), "simplified": Shape(accuracy=60.0, mode="simplified")}
    events = journal(groups, chance=60.0)
    assert len(baselines(events)) == 1
    assert set(verdicts(events).values()) == {Verdict.BETTER}
    (result,) = analyse(fold(events)).comparisons
    assert result.capped_by == ()
    assert holds(Requirement(left="shaped", relation="better-than", right="simplified"), result)
    for chance, verdict in ((60.0, Verdict.BETTER), (10.0, Verdict.BETTER_BELOW_MARGIN)):
        wide = journal(groups, chance=chance, margin=20.0, early_stop=False)
        assert set(verdicts(wide).values()) == {verdict}


# What parameters are worth needs the never-grown host; the share of kept seeds needs seeds.


def gains(events):
    history = fold(events)
    return gains_per_kparam(history, outcomes(history))


def test_gain_per_parameter_needs_the_never_grown_host() -> None:
    assert set(gains(planted_effect()).values()) == {None}
    found = outcomes(fold(three_groups()))
    gained = gains(three_groups())
    shaped = found["shaped/2"]
    wait = found["wait/2"]
    assert gained["shaped/2"] == pytest.approx(
        (shaped.evaluated - wait.evaluated) / (shaped.measures["params_added"] / 1000)
    )
    assert gained["wait/2"] is None


def test_the_kept_share_needs_seeds() -> None:
    found = outcomes(fold(three_groups()))
    kept, pruned = (found["shaped/2"].measures[name] for name in ("fossilized", "pruned"))
    assert kept_share(found["shaped/2"]) == pytest.approx(kept / (kept + pruned))
    assert kept_share(found["wait/2"]) is None
    assert kept_share(outcomes(fold(without_evaluations(three_groups())))["shaped/2"]) is None
