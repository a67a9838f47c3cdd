"""The plan of a rehearsal of faults, and who is struck when."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fake_plans
from support.fake_worker import episode

from esper_ab.contracts.messages import Progress
from esper_ab.control.chaos import KINDS, MOST_AT_ONE_MILESTONE, Chaos, PlannedFault, plan_faults
from esper_ab.journal.events import EpisodeRecorded, Ledger, RunStarted, WorkerStarted


def specs(**wanted):
    return [spec for block in fake_plans.plan(**wanted).blocks for spec in block.runs]


SIZES = st.integers(1, 9)


@given(rng_seed=st.integers(0, 2**40), episodes=SIZES, steps=SIZES, replicates=SIZES)
@settings(max_examples=60)
def test_no_replicate_can_be_lost_by_the_plan(rng_seed, episodes, steps, replicates):
    runs = specs(episodes=episodes, steps=steps, replicates=replicates)
    faults = plan_faults(rng_seed, runs)
    assert faults == plan_faults(rng_seed, runs)
    assert max(Counter((fault.run_name, fault.milestone) for fault in faults).values()) <= MOST_AT_ONE_MILESTONE
    between = Counter((fault.run_name, fault.milestone) for fault in faults if fault.step == 0)
    assert all(count == 1 for count in between.values()), "a record is written once"
    assert {fault.kind for fault in faults} == set(KINDS)
    assert {fault.run_name for fault in faults} <= {spec.ref.name for spec in runs}
    assert all(2 <= fault.milestone <= episodes + 1 and 0 <= fault.step <= steps for fault in faults)


def test_rng_seeds_differ():
    runs = specs(episodes=9, replicates=6)
    assert len({plan_faults(rng_seed, runs) for rng_seed in range(20)}) == 20


@pytest.fixture
def victim():
    """A process to be killed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def started(pid, incarnation=1):
    return WorkerStarted(worker="w00", incarnation=incarnation, lane="cpu:0", pid=pid, uuids=("",), torch_version="")


def begun(spec):
    return RunStarted(run=spec.ref, worker="w00", incarnation=1)


@pytest.mark.parametrize("step", [0, 2])
def test_it_strikes_once_where_it_was_planned_and_says_so(step, victim):
    spec = specs()[0]
    chaos = Chaos([PlannedFault(kind="SIGKILL", run_name=spec.ref.name, milestone=2, step=step)])
    quiet = [
        started(victim.pid), begun(spec), Progress(run=spec.ref, milestone=1, step=2, phase="train"),
        Progress(run=spec.ref, milestone=2, step=1, phase="train"), EpisodeRecorded(record=episode(spec, 1)),
    ]  # fmt: skip
    assert [chaos.after(event) for event in quiet] == [()] * len(quiet)
    assert victim.poll() is None
    due = (
        Progress(run=spec.ref, milestone=2, step=2, phase="train") if step else EpisodeRecorded(record=episode(spec, 0))
    )
    (entry,) = chaos.after(due)
    assert isinstance(entry, Ledger)
    assert (entry.category, entry.run_name, entry.episode) == ("chaos", spec.ref.name, 1)
    assert "chaos: SIGKILL" in entry.detail
    assert victim.wait(10) == -signal.SIGKILL
    assert chaos.after(started(os.getpid(), 2)) == chaos.after(due) == ()
    assert chaos.summary == "1 faults rehearsed (1 SIGKILL)"


def test_a_worker_that_has_died_meanwhile_is_left_to_its_successor(victim):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    spec = specs()[0]
    chaos = Chaos([PlannedFault(kind="SIGKILL", run_name=spec.ref.name, milestone=2, step=1)])
    due = Progress(run=spec.ref, milestone=2, step=1, phase="train")
    assert [chaos.after(event) for event in (due, begun(spec), started(gone.pid), due)] == [()] * 4
    assert chaos.summary == "0 faults rehearsed (none); 1 planned for work that never came"
    chaos.after(started(victim.pid, 2))
    assert len(chaos.after(due)) == 1
    assert victim.wait(10) == -signal.SIGKILL
