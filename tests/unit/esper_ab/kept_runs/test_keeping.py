"""Which runs of an experiment are kept, and that this happens as often as one likes."""

import os

from msgspec.structs import replace
from support.journals.kept_experiments import finished_experiment, synthetic
from support.plans.requests import FACTS

from esper_ab.journal.events import EpisodeRecorded, ExperimentContinued, Incident, RunReady, TrainerMended
from esper_ab.kept_runs.folder import evict, read_run, stored_files
from esper_ab.kept_runs.keeping import keep_runs


def test_runs_are_kept_once(tmp_path):
    experiment = finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic())
    assert [keep_runs(experiment) for _ in range(2)] == [12, 0]
    assert keep_runs(finished_experiment(tmp_path / "two", tmp_path / "kept", synthetic(replicates=7))) == 2


def test_a_damaged_file_is_replaced(tmp_path):
    experiment = finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic())
    keep_runs(experiment)
    damaged = stored_files(tmp_path / "kept")[3].path
    damaged.write_bytes(b"")
    assert keep_runs(experiment) == 1
    assert read_run(damaged) is not None


def test_an_experiment_without_a_folder_or_events_keeps_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    assert keep_runs(tmp_path / "empty") == 0


def test_runs_that_were_not_trained_as_planned_are_not_kept(tmp_path):
    inexact = Incident(category="inexact_resume", run_name="a/1", detail="")
    experiment = finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic(), extra=[inexact])
    assert keep_runs(experiment) == 11


def test_runs_of_another_sitting_are_kept_if_nothing_has_changed(tmp_path):
    first = synthetic().events()[0]
    same = ExperimentContinued(versions=first.versions, machine=first.machine, code=first.code)
    assert keep_runs(finished_experiment(tmp_path / "same", tmp_path / "kept 1", synthetic(), extra=[same])) == 12
    other = replace(same, versions={"torch": "another"})
    assert keep_runs(finished_experiment(tmp_path / "other", tmp_path / "kept 2", synthetic(), extra=[other])) == 0


class Changed:
    """A synthetic experiment with other events."""

    def __init__(self, experiment, events):
        self.plan = experiment.plan
        self.events = lambda: events


def test_a_run_that_was_taken_up_again_is_not_kept(tmp_path):
    events = synthetic().events()
    place, episode = next(
        (place, event)
        for place, event in enumerate(events)
        if isinstance(event, EpisodeRecorded) and event.record.run.name == "a/1"
    )
    again = RunReady(run=episode.record.run, warm_up_s=0.0, milestone=1)
    experiment = Changed(synthetic(), [*events[: place + 1], again, *events[place + 1 :]])
    assert keep_runs(finished_experiment(tmp_path / "one", tmp_path / "kept", experiment)) == 11


def test_runs_of_a_mended_trainer_are_not_kept(tmp_path):
    first, *events = synthetic().events()
    first = replace(first, plan=replace(first.plan, trainer=FACTS))
    experiment = Changed(synthetic(), [first, TrainerMended(sha256="0" * 64, before=()), *events])
    assert keep_runs(finished_experiment(tmp_path / "one", tmp_path / "kept", experiment)) == 0


def test_survivors_of_a_group_that_lost_a_run_are_kept_only_if_seeds_repeat(tmp_path):
    lost = Incident(category="dropped_pair", run_name="a/5", detail="died")
    one = finished_experiment(tmp_path / "one", tmp_path / "kept 1", synthetic(), extra=[lost], repeats=True)
    assert keep_runs(one) == 11
    two = finished_experiment(tmp_path / "two", tmp_path / "kept 2", synthetic(), extra=[lost], repeats=False)
    assert keep_runs(two) == 6


def test_a_policy_that_was_removed_or_changed_is_not_kept(tmp_path):
    experiment = finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic())
    (experiment / "policies" / "a" / "1.pt").unlink()
    (experiment / "policies" / "a" / "2.pt").write_bytes(b"another")
    assert keep_runs(experiment) == 10


def test_the_runs_used_longest_ago_make_room(tmp_path):
    keep_runs(finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic()))
    files = stored_files(tmp_path / "kept")
    for age, file in enumerate(files):
        os.utime(file.path, (1e9 - age, 1e9 - age))
    removed = evict(tmp_path / "kept", sum(file.size_bytes for file in files[:3]))
    assert {file.path for file in removed} == {file.path for file in files[3:]}
    assert {file.path for file in stored_files(tmp_path / "kept")} == {file.path for file in files[:3]}
