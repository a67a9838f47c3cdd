"""The spread of runs and pairs by the part of a run that the outcome summarises."""

import pytest
from msgspec.structs import replace
from support.journals.ready_journals import without_evaluations
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.pair_spread import known_from_pairs
from esper_ab.analysis.window_spread import change_of_runs, changes_of_groups, windows_of_pairs
from esper_ab.contracts.outcome_window import WINDOWS
from esper_ab.design.outcome_windows import needs_of, window_lines
from esper_ab.design.power_tables import answer
from esper_ab.design.scheme import PowerQuestion
from esper_ab.journal.events import AnyEvent, EpisodeRecorded, RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.stats.curve_change import curve_change

GROUPS = {"x": Shape(accuracy=80.0), "y": Shape(accuracy=60.0)}


@pytest.mark.parametrize("part", WINDOWS)
def test_the_spread_of_a_window_is_that_of_an_experiment_that_declares_it(part: str) -> None:
    windows = {window.outcome_over: window for window in windows_of_pairs(fold(Synthetic(groups=GROUPS).events()))}
    known = known_from_pairs(fold(Synthetic(groups=GROUPS, outcome_over=part).events()), "EXPERIMENT")
    assert (windows[part].sd, windows[part].sd_pairs) == (known.sd, known.sd_pairs)


def test_the_seeds_of_a_window_are_those_that_its_observed_pairs_need() -> None:
    history = fold(Synthetic(groups=GROUPS, outcome_over="last-third").events())
    known = known_from_pairs(history, "EXPERIMENT")
    tables = answer(known, 8, PowerQuestion(margin=1.0), rows=(8,)).tables
    needs = {window.outcome_over: window for window in needs_of(windows_of_pairs(history), tables)}
    assert needs["last-third"].seeds == tuple(table.needed.replicates for table in tables)
    header = window_lines(tuple(needs.values()), tables, "points")[1]
    assert header.split("  ")[-5:-1] == ["these pairs", "rho 0", "rho 0.3", "rho 0.6"]


def test_an_experiment_whose_runs_have_no_curve_has_no_windows() -> None:
    history = fold(Synthetic(groups=GROUPS, episodes=1).events())
    assert windows_of_pairs(history) == ()
    assert changes_of_groups(history) == ()


def test_the_change_of_a_group_is_that_of_the_last_third_of_its_curves() -> None:
    history = fold(Synthetic(groups=GROUPS, episodes=9).events())
    ends = [run.columns.of("outcome")[6:] for run in history.of_group("y")]
    changes = changes_of_groups(history)
    assert [change.group for change in changes] == ["x", "y"]
    assert changes[1].change == curve_change(ends)


def test_the_change_of_a_calibration_is_that_of_all_its_runs() -> None:
    history = fold(Synthetic(groups=GROUPS, episodes=9).events())
    change = change_of_runs(history)
    assert change is not None
    assert change.runs == len(history.runs)


def test_if_the_change_of_one_group_is_unknown_none_is_known() -> None:
    history = fold(event for event in Synthetic(groups=GROUPS).events() if not is_late_run_of_x(event))
    assert changes_of_groups(history) == ()


def is_late_run_of_x(event: AnyEvent) -> bool:
    """Whether an event records an episode or an evaluation of a run of group x other than its first."""
    if not isinstance(event, EpisodeRecorded | RunEvaluated):
        return False
    return event.record.run.group_id == "x" and event.record.run.replicate > 0


def test_a_part_without_an_outcome_is_left_out() -> None:
    history = fold(without_evaluations(Synthetic(groups=GROUPS).events()))
    assert [window.outcome_over for window in windows_of_pairs(history)] == list(WINDOWS)


def at_the_cap(event: AnyEvent) -> AnyEvent:
    """Return an episode of which every environment reaches 100 %, if it is the last one of its run."""
    if not isinstance(event, EpisodeRecorded) or event.record.episode < Synthetic().episodes - 1:
        return event
    envs = tuple(replace(env, outcome=100.0) for env in event.record.envs)
    return EpisodeRecorded(record=replace(event.record, envs=envs))


def test_a_window_in_which_runs_do_not_differ_is_left_out() -> None:
    history = fold([at_the_cap(event) for event in Synthetic(groups=GROUPS).events()])
    assert [window.outcome_over for window in windows_of_pairs(history)] == ["evaluation", "last-third", "curve-mean"]
