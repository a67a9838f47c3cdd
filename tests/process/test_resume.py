"""The coordinator is gone: another one goes on from the journal and the checkpoints to the same end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from support import fake_plans
from support.being_killed import alive, killed_at, workers_when_recorded
from support.conducted import conclusions, counts, incidents, of, records, resume, run, states, taken_up
from support.fake_worker import FAULT_VARIABLE
from support.in_process import esper_ab
from support.journals import planted_effect, write

from esper_ab.contracts.errors import Interrupted, UsageError
from esper_ab.contracts.settings import Arithmetic
from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentContinued,
    ExperimentEnded,
    Incident,
    LookTaken,
    MilestoneReleased,
    PlanExtended,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.file import JOURNAL_NAME, Journal
from esper_ab.journal.load import load

PATIENCE_S = 90.0
UNPAIRED = {"n_envs": 1, "episodes": 1, "unpaired": True, "margin": 0.001}


def cut(source, target, keep):
    """A copy of an experiment directory whose journal has only its first `keep` lines, as after a power cut."""
    shutil.copytree(source, target)
    lines = (source / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    (target / JOURNAL_NAME).write_bytes(b"".join(lines[:keep]))
    return target


def first(events, kind, condition=lambda event: True):
    return next(n for n, event in enumerate(events) if isinstance(event, kind) and condition(event))


@pytest.mark.parametrize("settings", [
    {"seeds": 2},
    {"sync": "independent"},
    {"cores": 1, "placement": "alternate", "groups": ("a", "b", "c")},
    pytest.param({"cores": 1, "placement": "sequence"}, marks=pytest.mark.slow),
], ids=str)  # fmt: skip
def test_a_journal_cut_after_any_line_is_resumed_to_the_same_records(tmp_path, settings):
    whole = run(tmp_path / "whole", fake_plans.plan(**settings))
    for keep in range(1, len(whole)):
        events = resume(cut(tmp_path / "whole", tmp_path / str(keep), keep))
        assert records(events) == records(whole)
        assert conclusions(events) == conclusions(whole)
        assert events[:keep] == whole[:keep]
        assert len(of(ExperimentContinued, events)) == 1
        assert len(of(RunStarted, events)) == len(of(RunStarted, whole))
        assert isinstance(events[-1], ExperimentEnded)
        assert events[-1].status == "finished"
        assert not incidents(events, "inexact_resume", "worker_death")


def test_a_journal_torn_within_a_line_is_resumed(tmp_path):
    whole = run(tmp_path / "whole", fake_plans.plan())
    data = (tmp_path / "whole" / JOURNAL_NAME).read_bytes()
    begin = data.index(b"\n") + 1
    for n, size in enumerate(range(begin, len(data) - 1, (len(data) - begin) // 11)):
        torn = cut(tmp_path / "whole", tmp_path / str(n), 0)
        (torn / JOURNAL_NAME).write_bytes(data[:size])
        assert records(resume(torn)) == records(whole)


def press_ctrl_c_at(milestone):
    class Presser:
        def observe(self, event):
            if isinstance(event, MilestoneReleased) and event.milestone == milestone:
                os.kill(os.getpid(), signal.SIGINT)

    return Presser()


def test_after_ctrl_c_nothing_is_run_again(tmp_path):
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=40, seeds=2))
    stopped = tmp_path / "stopped"
    with pytest.raises(Interrupted):
        run(stopped, fake_plans.plan(episodes=40, seeds=2), press_ctrl_c_at(8))
    with pytest.raises(Interrupted) as caught:
        resume(stopped, press_ctrl_c_at(20))
    assert str(caught.value).splitlines()[-1] == f"to go on: esper-ab resume {stopped}"
    last = [len(of_run.episodes) for of_run in load(stopped).history.runs.values()]
    events = resume(stopped)
    assert records(events) == records(whole)
    assert [milestones[-1] for milestones in taken_up(events).values()][:2] == last[:2]
    assert [len(milestones) for milestones in taken_up(events).values()] == [3, 3, 1, 1]
    assert counts(events) == {"interrupted": 2}


def damage(experiment_dir, name):
    """Flip a bit of the newest checkpoint of a run."""
    file = max((experiment_dir / "checkpoints" / name).glob("*.pt"), key=lambda path: int(path.stem))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    return int(file.stem)


@pytest.fixture
def stopped(tmp_path):
    """Cut when a/0 and b/0 had recorded three episodes of four."""
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=4))
    (tmp_path / "stopped").mkdir()
    with pytest.raises(Interrupted):
        run(tmp_path / "stopped", fake_plans.plan(episodes=4), press_ctrl_c_at(0))
    return whole, tmp_path / "stopped"


def test_a_damaged_checkpoint_is_told_and_what_is_done_again_has_to_be_the_same(stopped):
    whole, experiment_dir = stopped
    milestone = damage(experiment_dir, "b/0")
    events = resume(experiment_dir)
    assert records(events) == records(whole)
    assert taken_up(events)["b/0"] == [0, milestone - 1]
    (told,) = incidents(events, "damaged_checkpoint")
    assert (told.run_name, f"checkpoints/b/0/{milestone}.pt" in told.detail) == ("b/0", True)
    assert counts(events) == {"interrupted": 1, "damaged_checkpoint": 1}


def test_what_is_done_again_with_another_result_is_an_alarm_and_the_first_stays(stopped, monkeypatch):
    whole, experiment_dir = stopped
    milestone = damage(experiment_dir, "b/0")
    monkeypatch.setenv(FAULT_VARIABLE, f"other:b/0:{milestone}")
    events = resume(experiment_dir)
    (alarm,) = incidents(events, "inexact_resume")
    assert (alarm.run_name, alarm.episode) == ("b/0", milestone - 1)
    assert alarm.detail == f"episode {milestone - 1} was done again after a restart and had another result"
    assert records(events) == records(whole)


def test_a_death_after_a_resume_is_mended_as_before(stopped, monkeypatch):
    whole, experiment_dir = stopped
    monkeypatch.setenv(FAULT_VARIABLE, "raise:a/0:4:2,raise:b/0:5:3")
    events = resume(experiment_dir)
    assert records(events) == records(whole)
    names = [f"{worker.worker}/{worker.incarnation}" for worker in of(WorkerStarted, events)]
    assert sorted(names) == ["w00/1", "w00/2", "w00/3", "w01/1", "w01/2", "w01/3", "w01/4"][: len(names)]


def test_a_look_that_was_due_when_the_coordinator_died_is_taken_before_anything_starts(tmp_path):
    whole = run(tmp_path / "whole", fake_plans.plan(groups=("a", "b"), seeds=10, looks=(6, 10), **UNPAIRED))
    look = first(whole, LookTaken)
    for keep in range(look - 2, len(whole)):
        events = resume(cut(tmp_path / "whole", tmp_path / str(keep), keep))
        assert conclusions(events) == conclusions(whole)
        assert states(events) == states(whole)
        assert {event.run.replicate for event in of(RunStarted, events)} == set(range(6))


def test_an_open_ended_plan_that_died_between_look_and_extension_is_extended(tmp_path):
    settings = {"groups": ("a1", "a2"), "seeds": 2, "open_ended": True, "rng_seed": 3} | UNPAIRED
    settings["margin"] = 30.0
    whole = run(tmp_path / "whole", fake_plans.plan(**settings))
    extended = first(whole, PlanExtended)
    started = first(whole[extended:], RunStarted) + extended
    inside = first(whole[started:], EpisodeRecorded) + started
    for keep in (extended - 1, extended, extended + 1, inside):
        events = resume(cut(tmp_path / "whole", tmp_path / str(keep), keep))
        assert conclusions(events) == conclusions(whole)
        assert records(events) == records(whole)


def test_a_replicate_that_was_half_given_up_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:1")
    whole = run(tmp_path / "whole", fake_plans.plan(seeds=2))
    dropped = first(whole, Incident, lambda entry: entry.category == "dropped_pair")
    monkeypatch.setenv(FAULT_VARIABLE, "")
    events = resume(cut(tmp_path / "whole", tmp_path / "cut", dropped + 1))
    assert states(events) == states(whole)
    assert [entry.run_name for entry in incidents(events, "dropped_pair", "cancelled")] == ["b/0", "a/0"]
    assert records(events) == records(whole)


def test_what_cannot_be_resumed_says_why_and_stays_as_it_is(tmp_path, monkeypatch):
    run(tmp_path / "finished", fake_plans.plan())
    before = (tmp_path / "finished" / JOURNAL_NAME).read_bytes()
    with pytest.raises(UsageError, match="the experiment is finished"):
        resume(tmp_path / "finished")
    assert (tmp_path / "finished" / JOURNAL_NAME).read_bytes() == before
    with pytest.raises(UsageError, match="holds no event"):
        resume(cut(tmp_path / "finished", tmp_path / "empty", 0))
    with pytest.raises(UsageError, match="no journal"):
        resume(tmp_path)
    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:1")
    with pytest.raises(Exception, match="nothing to compare") as caught:
        run(tmp_path / "lost", fake_plans.plan())
    assert "esper-ab resume" not in str(caught.value)
    with pytest.raises(UsageError, match="every seed was given up"):
        resume(tmp_path / "lost")


def test_the_command_prints_the_report_and_refuses_a_finished_run(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect()[:-1])  # all but its end, so nothing is trained
    done = command("resume", experiment_dir, "--json", "--fail-unless", "shaped worse-than simplified")
    assert done.returncode == 12, done.stderr
    assert json.loads(done.stdout)["comparisons"]
    assert (experiment_dir / "report.html").exists()
    again = command("resume", experiment_dir)
    assert again.returncode == 2
    assert re.fullmatch(r"error: \S+: the experiment is finished; .*\n", again.stderr)
    assert re.findall("`(.*?)`", again.stderr) == [f"esper-ab report {experiment_dir}"]


def command(*args):
    return esper_ab(*args)


# --- a coordinator in a process of its own ---


def test_coordinators_killed_one_after_the_other_lose_and_double_nothing(tmp_path, sockets):
    episodes = 150
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=episodes))
    expected, experiment_dir, recorded = records(whole), tmp_path / "run", {}
    experiment_dir.mkdir()
    size = (tmp_path / "whole" / JOURNAL_NAME).stat().st_size
    for share in (0.1, 0.3, 0.6, 2.0):
        left = killed_at(experiment_dir, sockets, int(share * size), "resume" if recorded else episodes)
        ready = {name: points[-1] for name, points in taken_up(left).items()}
        if recorded:  # an acknowledged episode is never run again
            assert ready == recorded
        assert all(expected[key] == event for key, event in records(left).items())
        recorded = dict.fromkeys(ready, 0)
        for event in of(EpisodeRecorded, left):
            recorded[event.record.run.name] = event.record.episode + 1
    assert records(left) == expected
    assert conclusions(left) == conclusions(whole)
    assert counts(left) == {}
    deadline = time.monotonic() + 1.0
    while any(alive(event.pid) for event in of(WorkerStarted, left)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [event.pid for event in of(WorkerStarted, left) if alive(event.pid)]


def test_two_coordinators_do_not_resume_one_run(tmp_path):
    whole = run(tmp_path / "whole", fake_plans.plan())
    experiment_dir = cut(tmp_path / "whole", tmp_path / "run", len(whole) // 2)
    other, _ = Journal.take_up(experiment_dir, list)
    with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"):
        resume(experiment_dir)
    other.close()
    assert records(resume(experiment_dir)) == records(whole)


@pytest.mark.slow
def test_real_training_that_lost_a_worker_and_its_coordinator_ends_as_if_nothing_had_happened(tmp_path):
    def launch(name):
        return [
            sys.executable, "-m", "esper_ab.launch", "--task", "synthetic", "--groups", "shaped,simplified",
            "--episodes", "6", "--steps", "6", "--n-envs", "2", "--seeds", "1", "--eval-episodes", "2",
            "--devices", "cpu:0,cpu:1", "--quiet", "--json", "--output-dir", str(tmp_path), "--name", name,
        ]  # fmt: skip

    subprocess.run(launch("whole"), check=True, capture_output=True)
    process = subprocess.Popen(launch("run"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (second,) = (one.pid for one in workers_when_recorded(tmp_path / "run", process, 1) if one.worker == "w01")
    os.kill(second, signal.SIGKILL)
    workers = workers_when_recorded(tmp_path / "run", process, 3)
    process.kill()
    process.communicate()
    assert command("resume", tmp_path / "run", "--quiet").returncode == 0
    assert not [one.pid for one in workers if alive(one.pid)]
    whole, again = load(tmp_path / "whole").history, load(tmp_path / "run").history
    for name, of_run in whole.runs.items():
        assert [record.digest for record in of_run.curve()] == [record.digest for record in again.runs[name].curve()]
        assert of_run.evaluation.digest == again.runs[name].evaluation.digest
        assert of_run.evaluation.policy_sha256 == again.runs[name].evaluation.policy_sha256
    verdicts = [json.loads((tmp_path / name / "verdict.json").read_text()) for name in ("whole", "run")]
    said = [[(one["verdict"], one["sentence"]) for one in verdict["comparisons"]] for verdict in verdicts]
    assert said[0] == said[1]  # the findings about how it went differ, as they should
    assert {"worker_death", "restart"} <= {entry.category for entry in again.incidents}
    assert not [entry for entry in again.incidents if entry.category == "inexact_resume"]


def test_what_is_left_is_not_trained_by_another_kernel(tmp_path):
    """Its records would be of two arithmetics; refused before anything is written or started."""
    arithmetic = Arithmetic(kernel="native-generic", kernel_build="a compiler that nobody has")
    run(tmp_path / "whole", fake_plans.plan(arithmetic=arithmetic))
    cut(tmp_path / "whole", tmp_path / "left", 3)
    before = (tmp_path / "left" / JOURNAL_NAME).read_bytes()
    ended = esper_ab("resume", tmp_path / "left", "--quiet")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "native-generic" in ended.stderr
    assert (tmp_path / "left" / JOURNAL_NAME).read_bytes() == before
