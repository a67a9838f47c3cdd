"""--share-observation-norm through real coordinators: coupled by the barrier alone, whatever dies on the way.

The digest of a fake worker's record covers what the release before brought, so records are equal only where releases
were.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from support import fake_plans
from support.being_killed import killed_at, workers_when_recorded
from support.conducted import counts, events_of, incidents, of, records, resume, run, states
from support.fake_worker import FAULT_VARIABLE, moments

from esper_ab.contracts.records import Moments
from esper_ab.control.rules.blocks import pooled
from esper_ab.journal.events import EpisodeRecorded, LookTaken, MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.load import load

PATIENCE_S = 120.0
SHARED = {"share_observation_norm": True}


def released(events):
    """Block and milestone -> the moments of its releases, which are all the same."""
    found = {}
    for event in of(MilestoneReleased, events):
        carried = event.observations if isinstance(event.observations, Moments) else None
        assert found.setdefault((event.replicate, event.milestone), carried) == carried
    return found


def test_every_release_after_an_episode_carries_what_all_learners_have_observed(tmp_path):
    plan = fake_plans.plan(cores=3, groups=("a", "b", "c"), seeds=2, **SHARED)
    found = released(run(tmp_path / "run", plan))
    for block in plan.blocks:
        assert found[block.replicate, 0] is None
        assert found[block.replicate, 3] is None
        for milestone in (1, 2):
            assert found[block.replicate, milestone] == pooled([moments(spec, milestone) for spec in block.runs])


def test_nothing_is_shared_unless_asked_for(tmp_path):
    events = run(tmp_path / "run", fake_plans.plan())
    assert set(released(events).values()) == {None}
    assert b"observations" not in b"\n".join((tmp_path / "run" / JOURNAL_NAME).read_bytes().splitlines()[1:])


def test_start_order_and_turns_change_no_release(tmp_path):
    """Who comes first and whether runs take turns moves no bit."""
    spread = run(tmp_path / "spread", fake_plans.plan(episodes=4, **SHARED))
    turns = run(tmp_path / "turns", fake_plans.plan(cores=1, placement="alternate", episodes=4, **SHARED))
    assert released(turns) == released(spread)
    other = run(tmp_path / "other", fake_plans.plan(groups=("b", "a"), order="fixed", episodes=4, **SHARED))
    assert released(other) == released(spread)


def test_another_group_changes_the_records_of_the_first_which_is_the_coupling(tmp_path):
    def of_a(groups, **settings):
        events = run(tmp_path / "-".join((*groups, *settings)), fake_plans.plan(cores=3, groups=groups, **settings))
        return [event.record.digest for (name, _), event in sorted(records(events).items()) if name == "a/0"]

    two, three = of_a(("a", "b"), **SHARED), of_a(("a", "b", "c"), **SHARED)
    assert sum(one != other for one, other in zip(two, three, strict=True)) == 2  # all but the first episode
    assert of_a(("a", "b")) == of_a(("a", "b", "c"))


@pytest.mark.parametrize("settings", [
    pytest.param({"seeds": 2}, marks=pytest.mark.slow), {"cores": 1, "placement": "alternate"},
], ids=str)  # fmt: skip
def test_a_journal_cut_after_any_line_is_resumed_to_the_same_records_and_releases(tmp_path, settings):
    whole = run(tmp_path / "whole", fake_plans.plan(**settings, **SHARED))
    lines = (tmp_path / "whole" / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    for keep in range(1, len(whole), 2):
        copy = tmp_path / str(keep)
        subprocess.run(["cp", "-r", tmp_path / "whole", copy], check=True)
        (copy / JOURNAL_NAME).write_bytes(b"".join(lines[:keep]))
        events = resume(copy)
        assert records(events) == records(whole)
        assert released(events) == released(whole)
        assert not incidents(events, "inexact_resume", "worker_death")


@pytest.mark.parametrize("faults", [
    "raise:b/0:3:1", "raise:a/0:1:2,raise:b/0:2:1", "nan:b/0:2:1", "leave:a/0:5:1", "twice:b/0:2",
])  # fmt: skip
def test_a_worker_that_dies_costs_no_record(tmp_path, monkeypatch, faults):
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=4, **SHARED))
    monkeypatch.setenv(FAULT_VARIABLE, faults)
    events = run(tmp_path / "run", fake_plans.plan(episodes=4, **SHARED))
    assert records(events) == records(whole)
    assert released(events) == released(whole)


def test_a_run_set_back_by_a_damaged_checkpoint_gets_the_old_release_again(tmp_path):
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=4, **SHARED))
    events = events_of(tmp_path / "whole")
    at = max(n for n, event in enumerate(events) if isinstance(event, EpisodeRecorded) and event.record.episode == 2)
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", tmp_path / "whole", copy], check=True)
    lines = (copy / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    (copy / JOURNAL_NAME).write_bytes(b"".join(lines[: at + 1]))
    for file in (copy / "checkpoints" / "b" / "0").glob("*.pt"):
        file.write_bytes(b"rot")
    again = resume(copy)
    assert counts(again)["damaged_checkpoint"] > 0
    assert records(again) == records(whole)
    assert released(again) == released(whole)
    assert not incidents(again, "inexact_resume")


def test_a_lost_replicate_and_a_group_that_left_do_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:1")
    lost = run(tmp_path / "lost", fake_plans.plan(seeds=2, **SHARED))
    assert states(lost) == {"a/0": "lost", "b/0": "lost", "a/1": "finished", "b/1": "finished"}
    monkeypatch.delenv(FAULT_VARIABLE)
    # With noise of their own, a1 and a2 are an A/A that goes on, and z is decided at the first look.
    plan = fake_plans.plan(
        cores=3, groups=("a1", "a2", "z"), seeds=10, looks=(6, 10), episodes=1, margin=0.001, unpaired=True,
        **SHARED,
    )
    events = run(tmp_path / "left", plan)
    (look, *_) = of(LookTaken, events)
    assert look.leaving == ("z",)
    remaining = [spec for spec in plan.blocks[8].runs if spec.ref.group_id != "z"]
    assert released(events)[8, 1] == pooled([moments(spec, 1) for spec in remaining])


def test_a_killed_coordinator_goes_on_with_the_same_moments(tmp_path, sockets):
    whole = run(tmp_path / "whole", fake_plans.plan(episodes=60, **SHARED))
    experiment_dir, size = tmp_path / "run", (tmp_path / "whole" / JOURNAL_NAME).stat().st_size
    experiment_dir.mkdir()
    left = killed_at(experiment_dir, sockets, size // 3, 60, "share_observation_norm")
    assert 0 < len(of(EpisodeRecorded, left)) < 120
    left = killed_at(experiment_dir, sockets, 2 * size, "resume")
    assert records(left) == records(whole)
    assert released(left) == released(whole)
    assert counts(left) == {}


@pytest.mark.slow
def test_real_training_with_a_shared_normaliser_survives_the_death_of_a_worker_and_of_its_coordinator(tmp_path):
    def command(name):
        return [
            sys.executable, "-m", "esper_ab.launch", "--task", "synthetic", "--groups", "shaped,simplified",
            "--share-observation-norm", "--episodes", "5", "--steps", "5", "--n-envs", "2", "--seeds", "1",
            "--eval-episodes", "2", "--devices", "cpu:0", "--placement", "share", "--quiet", "--json", "--output-dir",
            str(tmp_path), "--name", name,
        ]  # fmt: skip

    subprocess.run(command("whole"), check=True, capture_output=True)
    process = subprocess.Popen(command("run"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (second,) = (one.pid for one in workers_when_recorded(tmp_path / "run", process, 1) if one.device == "cpu:0/1")
    os.kill(second, signal.SIGKILL)
    workers_when_recorded(tmp_path / "run", process, 3)
    process.kill()
    process.communicate()
    go_on = [sys.executable, "-m", "esper_ab.commands.cli", "resume", tmp_path / "run", "--quiet"]
    subprocess.run(go_on, check=True, capture_output=True, timeout=PATIENCE_S)
    whole, again = load(tmp_path / "whole").history, load(tmp_path / "run").history
    assert again.shared == whole.shared
    assert set(whole.shared) == {(0, milestone) for milestone in range(1, 6)}
    for name, one in whole.runs.items():
        assert [record.digest for record in one.curve()] == [record.digest for record in again.runs[name].curve()]
        assert one.evaluation.policy_sha256 == again.runs[name].evaluation.policy_sha256
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert "coupled" in json.dumps(verdict)
