"""Workers that see nothing of the experiment directory: the same records and files, whoever dies in between."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import apart, conducted, fake_plans
from support.apart import Apart, contents
from support.children import environment
from support.fake_worker import FAULT_VARIABLE

from esper_ab.analysis.result_hash import result_hash
from esper_ab.commands.fsck import examine
from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.fold import fold
from esper_ab.journal.load import load
from esper_ab.launchers.local import LocalLauncher

PLAN = fake_plans.plan(4, ("a", "b"), replicates=3, episodes=3)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return conducted.run(tmp_path_factory.mktemp("run"), PLAN, launcher=LocalLauncher(apart.FAKE))


def run(folder, entry="large"):
    return conducted.run(folder / "run", PLAN, launcher=Apart(f"support.apart:{entry}"))


def check_files(experiment_dir, events):
    """Everything that a record names is there, and no part of anything else."""
    for run, of_run in fold(events).runs.items():
        for checkpoint in of_run.checkpoints[-2:]:
            data = (experiment_dir / checkpoint.file).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (checkpoint.size_bytes, checkpoint.sha256), run
    assert not examine(experiment_dir).faults


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_records_and_results_are_those_of_workers_that_share_the_directory(tmp_path, shared, transport):
    events = conducted.run(tmp_path / "run", PLAN, launcher=Apart(transport=transport))
    assert result_hash(fold(events)) == result_hash(fold(shared))
    assert conducted.records(events) == conducted.records(shared)
    assert not conducted.ledger(events)
    assert len(contents(tmp_path / "run", "policies")) == 6
    check_files(tmp_path / "run", events)


def test_a_worker_killed_in_the_middle_of_an_upload_costs_nothing(tmp_path, shared):
    events = run(tmp_path, "dies_in_an_upload")
    assert conducted.counts(events) == {"worker_death": 1, "restart": 1}
    assert result_hash(fold(events)) == result_hash(fold(shared))
    (again,) = [milestones for milestones in conducted.taken_up(events).values() if len(milestones) > 1]
    assert again == [0, 1], "the first checkpoint was fetched from the coordinator"
    check_files(tmp_path / "run", events)


def test_other_bytes_than_were_announced_are_a_fault_of_the_worker_and_nothing_is_kept(tmp_path, shared):
    events = run(tmp_path, "lies")
    (death,) = conducted.ledger(events, "worker_death")
    assert "/2.pt came with other bytes than were announced" in death.detail
    assert result_hash(fold(events)) == result_hash(fold(shared))
    check_files(tmp_path / "run", events)


def test_a_record_counts_only_with_the_checkpoint_that_was_stored(tmp_path, shared):
    events = run(tmp_path, "names_what_it_has_not_stored")
    (death,) = conducted.ledger(events, "worker_death")
    assert "names checkpoints/a/0/1.2.pt, of which other bytes or none were stored" in death.detail
    assert result_hash(fold(events)) == result_hash(fold(shared))


COORDINATOR = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.apart import Apart
from test_link_files import PLAN
from esper_ab.control import experiment_run
from esper_ab.control.file_store import FileStore
do, begun = FileStore.do, set()
def die_in_the_middle(store, job):
    path = getattr(getattr(job, "announced", None), "path", "")
    if path in begun:
        os.kill(os.getpid(), signal.SIGKILL)
    if path.endswith("/2.pt"):  # the second checkpoint of a run of the first replicate, which is far from its end
        begun.add(path)
    do(store, job)
FileStore.do = die_in_the_middle
experiment_run.run(PLAN, Path(sys.argv[1]), Apart("support.apart:large"), ())
"""


def test_a_coordinator_killed_in_the_middle_of_an_upload_is_resumed_to_the_same_records(tmp_path, shared):
    folder = tmp_path / "run"
    folder.mkdir()
    command = [sys.executable, "-c", COORDINATOR, str(folder), str(Path(__file__).parent)]
    killed = subprocess.run(command, env=environment(), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert 0 < len(conducted.of(EpisodeRecorded, conducted.events_of(folder))) < 18
    events = conducted.resume(folder, launcher=Apart("support.apart:large"))
    assert result_hash(fold(events)) == result_hash(fold(shared))
    assert max(max(milestones) for milestones in conducted.taken_up(events).values()) > 0
    check_files(folder, events)


def test_the_log_of_a_worker_that_fails_is_there_when_its_error_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "raise:a/0:1:1")
    events = run(tmp_path)
    (death,) = conducted.ledger(events, "worker_death")
    assert "the planted error" in death.detail
    logs = contents(tmp_path / "run", "logs")
    assert any(b"Traceback" in log and b"the planted error" in log for log in logs.values())


REWARD = """
import numpy as np
print("a word from the reward", flush=True)
def reward(facts, settings):
    return np.ones(len(facts.op))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_real_training_with_a_reward_of_the_users_gives_the_same_files_byte_by_byte(tmp_path):
    mine = tmp_path / "mine größer.py"
    mine.write_text(REWARD)
    flags = (
        "--task", "synthetic", "--groups", f"shaped,mine={mine}:reward", "--replicates", "1",
        "--episodes", "2", "--steps", "4", "--n-envs", "2", "--eval-hosts", "2", "--quiet", "--devices", "cpu:0,cpu:1",
        "--out", str(tmp_path),
    )  # fmt: skip
    for files in ("shared", "link"):
        command = [sys.executable, "-m", "esper_ab.launch", *flags, "--files", files, "--name", files]
        done = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    hashes = {files: result_hash(load(tmp_path / files).history) for files in ("shared", "link")}
    assert hashes["shared"] == hashes["link"]
    for folder in ("policies", "checkpoints", "rewards"):
        found = contents(tmp_path / "link", folder)
        assert found
        assert found == contents(tmp_path / "shared", folder)
    logs = {files: contents(tmp_path / files, "logs")["logs/mine-0.log"] for files in hashes}
    assert logs["link"].startswith(logs["shared"].partition(b"stop:")[0])
    assert b"a word from the reward" in logs["link"]
    assert b"mine/0: done" in logs["link"]
