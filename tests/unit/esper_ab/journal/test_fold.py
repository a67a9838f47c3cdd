"""The fold of a journal: what it says of runs in every state, however it is cut."""

from __future__ import annotations

import math

import msgspec
import pytest
from support.journals import (
    Synthetic,
    failed_run,
    given_up,
    one_replicate,
    planted_effect,
    three_groups,
    without_evaluations,
)

from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentEnded,
    Incident,
    LookTaken,
    MilestoneReleased,
    PlanExtended,
    RunEvaluated,
    RunStarted,
)
from esper_ab.journal.fold import Inconsistent, begin, fold
from esper_ab.journal.outcomes import mean, mean_outcome, outcome_of, outcomes
from esper_ab.plan.blocks import extend


def test_states_follow_the_events_of_one_run():
    events = one_replicate()
    history, seen = begin(events[0]), []
    for event in events[1:]:
        history.add(event)
        state = history.runs["shaped/0"].state
        if not seen or seen[-1] != state:
            seen.append(state)
    assert seen == ["planned", "warming up", "training", "evaluating", "finished"]
    assert history.runs["shaped/0"].released == Synthetic().episodes + 1
    assert history.ended.status == "finished"


def test_a_release_is_not_taken_back():
    """A worker that was started again is told of an earlier milestone; what was permitted stays permitted."""
    history = fold(one_replicate())
    history.add(MilestoneReleased(replicate=0, milestone=1, runs=("shaped/0",)))
    assert history.runs["shaped/0"].released == Synthetic().episodes + 1


def test_folding_in_pieces_is_folding():
    events = failed_run()
    whole = fold(events)
    history = begin(events[0])
    for event in events[1:]:
        history.add(event)
    assert history == whole
    assert [run.state for run in whole.of_group("simplified")] == ["finished"] * 3 + ["training"] + ["planned"] * 2
    assert whole.incidents[0].category == "worker_death"


def test_numbers_alone_are_enough_for_states_and_outcomes():
    """What a coordinator, a viewer and a tracker fold: they keep no record of a training episode."""
    whole, numbers = fold(failed_run()), fold(failed_run(), keeps_records=False)
    assert [run.state for run in numbers.runs.values()] == [run.state for run in whole.runs.values()]
    assert outcomes(numbers) == outcomes(whole)
    assert all(len(run.columns) == len(run.episodes) for run in whole.runs.values())
    assert any(len(run.columns) for run in numbers.runs.values())
    assert not any(len(run.episodes) for run in numbers.runs.values())


def test_a_repeated_record_counts_once():
    events = one_replicate()
    twice = [copy for event in events for copy in ([event] * 2 if isinstance(event, EpisodeRecorded) else [event])]
    assert fold(twice) == fold(events)


def test_what_follows_an_end_means_that_it_goes_on():
    events = one_replicate()
    history = fold([*events[:8], ExperimentEnded(status="interrupted", detail="")])
    assert history.ended is not None
    history.add(events[8])
    assert history.ended is None


def test_a_journal_begins_with_its_plan():
    with pytest.raises(Inconsistent, match="experiment_started"):
        fold(one_replicate()[1:])
    with pytest.raises(Inconsistent, match="experiment_started"):
        fold([])
    with pytest.raises(Inconsistent, match="starts once"):
        fold(one_replicate()[:1] * 2)


def test_an_evaluation_has_an_outcome_of_every_environment():
    events = planted_effect()
    place = next(n for n, event in enumerate(events) if isinstance(event, RunEvaluated))
    first, *others = events[place].record.episodes
    without = msgspec.structs.replace(first, outcome=msgspec.structs.replace(first.outcome, outcome=None))
    record = msgspec.structs.replace(events[place].record, episodes=(without, *others))
    with pytest.raises(Inconsistent, match="has an environment without an outcome"):
        fold([*events[:place], RunEvaluated(record=record)])


def test_outcome_is_the_mean_over_sampled_evaluation_episodes():
    record = next(event.record for event in planted_effect() if isinstance(event, RunEvaluated))
    sampled = [played.outcome.outcome for played in record.episodes if played.actions == "sampled"]
    assert len(sampled) == 8
    assert mean_outcome(record) == math.fsum(sampled) / 8
    greedy = tuple(played for played in record.episodes if played.actions == "greedy")
    assert mean_outcome(msgspec.structs.replace(record, episodes=greedy)) is None
    assert mean_outcome(None) is None


def test_entropy_changes_where_a_policy_learns():
    found = outcomes(fold(three_groups()))
    assert found["wait/2"].entropy_change is None
    assert found["shaped/2"].entropy_change < 0


def test_training_area_is_the_mean_of_the_curve():
    history = fold(planted_effect())
    curve = [mean_outcome(record) for record in history.runs["shaped/1"].curve()]
    assert outcomes(history)["shaped/1"].training_area == pytest.approx(sum(curve) / len(curve))


def test_empty_evaluations_leave_everything_open():
    found = outcomes(fold(without_evaluations(planted_effect())))["shaped/0"]
    assert (found.outcome, found.greedy, {*found.measures.values()}, found.rewards) == (None, None, {None}, {})
    assert found.training_area is not None


def test_mean_skips_what_is_not_there():
    assert mean([1.0, None, 2.0]) == 1.5
    assert mean([None]) is None
    assert mean([]) is None


def test_declared_outcomes_are_means_of_the_curve_or_of_its_end():
    run = fold(planted_effect()).runs["shaped/0"]
    curve = [mean_outcome(record) for record in run.curve()]
    assert outcome_of(run, "curve-mean") == pytest.approx(math.fsum(curve) / 8)
    assert outcome_of(run, "last-tenth") == curve[-1]
    assert outcome_of(run, "evaluation") == mean_outcome(run.evaluation)
    last = next(i for i, e in enumerate(planted_effect()) if isinstance(e, EpisodeRecorded) and e.record.episode == 7)
    run = fold(planted_effect()[:last]).runs["shaped/0"]
    assert outcome_of(run, "curve-mean") is None
    assert outcome_of(run, "last-tenth") is None


@pytest.mark.parametrize("outcome", ["curve-mean", "last-tenth"])
@pytest.mark.parametrize("category", ["dropped_pair", "cancelled"])
def test_a_run_that_was_given_up_has_no_outcome_although_its_curve_is_whole(outcome, category):
    whole = Synthetic(outcome_over=outcome).events()
    history = fold(given_up(whole, category))
    (lost,) = (run for run in history.runs.values() if run.lost)
    found = outcomes(history)
    assert found[lost.ref.name].outcome is None
    assert outcomes(fold(whole))[lost.ref.name].outcome is not None
    assert {name: one.outcome for name, one in found.items()} == {
        name: outcome_of(run, outcome) for name, run in history.runs.items()
    }


def test_a_look_leaves_out_what_its_groups_have_not_started():
    history = begin(three_groups()[0])
    history.add(RunStarted(run=history.runs["shaped/1"].ref, worker="w0", incarnation=1))
    history.add(LookTaken(replicates=6, decided=(), leaving=("shaped",)))
    states = {name: run.state for name, run in history.runs.items() if name.startswith("shaped")}
    assert states.pop("shaped/1") == "warming up"
    assert set(states.values()) == {"left out"}
    assert history.runs["wait/3"].expected


def test_an_extension_adds_runs_and_replaces_the_rule_and_those_who_left_stay_away():
    history = begin(planted_effect()[0])
    history.add(LookTaken(replicates=6, decided=(), leaving=("shaped",)))
    history.add(PlanExtended(extension=extend(history.plan, history.design, 6, 2)))
    assert history.replicates == 8
    assert history.design.evidence == pytest.approx(100.0)
    assert (history.runs["shaped/7"].state, history.runs["simplified/7"].state) == ("left out", "planned")


def test_a_dropped_pair_is_lost_and_no_longer_expected():
    history = begin(planted_effect()[0])
    history.add(
        Incident(category="dropped_pair", run_name="shaped/2", episode=None, detail="three deaths at episode 1")
    )
    assert (history.runs["shaped/2"].state, history.runs["shaped/2"].expected) == ("lost", False)
