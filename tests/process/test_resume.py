"""A new coordinator resumes or extends an experiment from its journal and checkpoints."""

import json
import re
import shutil

import pytest
from support.commands.in_process import esper_ab
from support.coordinators import disturbed
from support.coordinators.disturbed import (
    THREADS,
    PressCtrlC,
    conclusions,
    counts,
    events_of_kind,
    incidents,
    records,
    resume,
    resume_points,
    run,
)
from support.coordinators.killed_processes import alive, killed_at
from support.journals.ready_journals import planted_effect, write
from support.plans import fake_plans
from support.processes.waiting import eventually
from support.workers.fake_worker import FAULT_VARIABLE

from esper_ab.analysis.observe import progress_of
from esper_ab.campaign.extending import extension
from esper_ab.contracts.errors import Interrupted, UsageError
from esper_ab.control.experiment_run import extend
from esper_ab.journal.events import EpisodeRecorded, ExperimentContinued, ExperimentEnded, RunStarted, WorkerStarted
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME


def copy_cut(source, target, kept_lines):
    """Copy an experiment directory with only the first `kept_lines` lines of its journal, as after a power cut."""
    shutil.copytree(source, target)
    lines = (source / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    (target / JOURNAL_NAME).write_bytes(b"".join(lines[:kept_lines]))
    return target


def test_resuming_from_a_truncated_journal_gives_the_same_records(tmp_path):
    """Every kind of plan is covered by the unit test test_machine.py."""
    whole = run(tmp_path / "whole", fake_plans.plan(seeds=2))
    for kept_lines in range(1, len(whole), 3):
        events = resume(copy_cut(tmp_path / "whole", tmp_path / str(kept_lines), kept_lines))
        assert records(events) == records(whole)
        assert conclusions(events) == conclusions(whole)
        assert events[:kept_lines] == whole[:kept_lines]
        assert len(events_of_kind(ExperimentContinued, events)) == 1
        assert len(events_of_kind(RunStarted, events)) == len(events_of_kind(RunStarted, whole))
        assert events[-1] == ExperimentEnded(status="finished", detail="")
        assert not incidents(events, "inexact_resume", "worker_death")


def damage(experiment_dir, name):
    """Flip a bit of a run's newest checkpoint and return its milestone."""
    file = max((experiment_dir / "checkpoints" / name).glob("*.pt"), key=lambda path: int(path.stem))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    return int(file.stem)


def test_an_episode_repeated_after_a_damaged_checkpoint_must_be_identical(tmp_path, monkeypatch):
    """A different result raises an alarm, and the first record stays."""
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=4))
    stopped = tmp_path / "stopped"
    with pytest.raises(Interrupted):
        run(stopped, fake_plans.plan(episodes=4), PressCtrlC(0))
    milestones = {name: damage(stopped, name) for name in ("a/0", "b/0")}
    monkeypatch.setenv(FAULT_VARIABLE, f"other:b/0:{milestones['b/0']}")
    events = resume(stopped)
    assert records(events) == records(whole)
    for name, milestone in milestones.items():
        assert resume_points(events)[name] == [0, milestone - 1]
        (incident,) = [entry for entry in incidents(events, "damaged_checkpoint") if entry.run_name == name]
        assert f"checkpoints/{name}/{milestone}.pt" in incident.detail
    (alarm,) = incidents(events, "inexact_resume")
    assert (alarm.run_name, alarm.episode) == ("b/0", milestones["b/0"] - 1)
    assert alarm.detail == f"episode {alarm.episode} was done again after a restart and had a different result"
    assert counts(events) == {"interrupted": 1, "damaged_checkpoint": 2, "inexact_resume": 1}


def test_resume_prints_the_report_if_no_run_is_left_to_train(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect()[:-1])  # without its end, so nothing is left to train
    result = esper_ab("resume", experiment_dir, "--json", "--fail-unless", "shaped worse-than simplified")
    assert result.returncode == 12, result.stderr
    assert json.loads(result.stdout)["comparisons"]
    assert (experiment_dir / "report.html").exists()
    second_result = esper_ab("resume", experiment_dir)
    assert second_result.returncode == 2
    assert re.fullmatch(r"error: \S+: the experiment is finished; .*\n", second_result.stderr)
    assert re.findall("`(.*?)`", second_result.stderr) == [f"esper-ab report {experiment_dir}"]


def run_short_experiment(experiment_dir, seeds):
    settings = {"groups": ("a1", "a2"), "rng_seed": 1, "episodes": 1, "unpaired": True, "margin": 0.001}
    return run(experiment_dir, fake_plans.plan(seeds=seeds, **settings))


def test_seeds_added_to_a_finished_experiment_are_judged_by_a_stricter_bound(tmp_path):
    """The added runs equal those of a longer plan, bit for bit."""
    short_dir = tmp_path / "short"
    events_before = run_short_experiment(short_dir, 6)
    with pytest.raises(UsageError, match="already has 6 seeds; give the new total number"):
        extend(short_dir, lambda history: extension(short_dir, history, 6), THREADS, ())
    assert disturbed.events_of(short_dir) == events_before
    extend(short_dir, lambda history: extension(short_dir, history, 9), THREADS, ())
    history = load(short_dir).history
    events = disturbed.events_of(short_dir)
    assert (history.replicates, history.ended.status) == (9, "finished")
    assert len(events_of_kind(ExperimentContinued, events)) == 1
    assert {(start.worker, start.incarnation) for start in events_of_kind(WorkerStarted, events)} >= {
        ("w00", 1),
        ("w00", 2),
    }
    assert counts(events) == {}
    (progress,) = progress_of(history).comparisons.values()
    assert [look.bound_e for look in progress.looks] == [None, *[pytest.approx(100.0)] * 3]
    longer_records = records(run_short_experiment(tmp_path / "longer", 9))
    assert {key: event.record.digest for key, event in records(events).items()} == {
        key: event.record.digest for key, event in longer_records.items()
    }


# --- a coordinator in a process of its own ---


def test_repeatedly_killed_coordinators_neither_lose_nor_duplicate_records(tmp_path, sockets):
    episodes = 150
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=episodes))
    expected = records(whole)
    experiment_dir = tmp_path / "run"
    recorded_points = {}
    experiment_dir.mkdir()
    size = (tmp_path / "whole" / JOURNAL_NAME).stat().st_size
    for share in (0.2, 0.6, 2.0):
        events = killed_at(experiment_dir, sockets, int(share * size), "resume" if recorded_points else episodes)
        resume_milestones = {name: points[-1] for name, points in resume_points(events).items()}
        if recorded_points:  # an acknowledged episode is never run again
            assert resume_milestones == recorded_points
        assert all(expected[key] == event for key, event in records(events).items())
        recorded_points = dict.fromkeys(resume_milestones, 0)
        for event in events_of_kind(EpisodeRecorded, events):
            recorded_points[event.record.run.name] = event.record.episode + 1
    assert records(events) == expected
    assert conclusions(events) == conclusions(whole)
    assert counts(events) == {}
    eventually(lambda: not any(alive(event.pid) for event in events_of_kind(WorkerStarted, events)), 1.0)
