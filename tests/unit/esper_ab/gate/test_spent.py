"""The time that a gate has taken: its sittings, without the pauses between them. The journals have a line a second."""

from support.journals.ready_journals import write
from support.journals.synthetic import Synthetic

from esper_ab.gate.spent import run_seconds, spent_seconds
from esper_ab.journal.events import ExperimentContinued
from esper_ab.journal.load import load

EVENTS = Synthetic(replicates=2).events()


def test_the_time_from_the_first_event_to_the_last(tmp_path):
    assert spent_seconds(write(tmp_path / "done", EVENTS)) == len(EVENTS) - 1


def test_a_pause_does_not_count(tmp_path):
    events = [*EVENTS[:5], ExperimentContinued(versions={}, machine={}, code={}), *EVENTS[5:]]
    assert spent_seconds(write(tmp_path / "continued", events)) == len(events) - 2


def test_the_mean_duration_of_runs_that_have_ended(tmp_path):
    history = load(write(tmp_path / "done", EVENTS)).history
    run = next(iter(history.runs.values()))
    expected = sum(run.columns.of("total_s")) + run.evaluation.timing.total_s
    assert run_seconds(history) == expected
    assert run_seconds(load(write(tmp_path / "begun", EVENTS[:3])).history) == 0.0
