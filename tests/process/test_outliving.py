"""What is started before a worker is at work ends with its coordinator; workers outlive one that stands still."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from support import conducted, fake_plans
from support.being_killed import alive
from support.children import environment
from support.patience import eventually
from support.standstill import coordinator, stood_still

from esper_ab.analysis.trained_by import result_hash
from esper_ab.journal.fold import fold
from esper_ab.launchers.local import LocalLauncher

PATIENCE_S = 60.0
REWARD = """
import os, sys, time
with open({pipe!r}, "w") as told:
    told.write(f"{{os.getpid()}}\\n")
time.sleep(1e6)
"""
# In place of a coordinator: the preflight, and a worker that has come as far as its entry point.
PREFLIGHT = """
import sys
from esper_ab.contracts.children import Questions
from esper_ab.control.preflight import examine
examine(Questions(task="synthetic", data_dir="", user_rewards=(sys.argv[1] + "/hangs.py:reward",)))
"""
WORKER = """
import sys, time
from esper_ab.launchers.local import LocalLauncher
from support.orders import order
launcher = LocalLauncher("support.hanging:main")
worker = launcher.start(order(experiment_dir=sys.argv[1], log_file="logs/w00.log"))
time.sleep(1e6)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("program", [PREFLIGHT, WORKER], ids=["preflight", "worker"])
def test_nothing_outlives_a_coordinator_that_ends_while_it_starts(tmp_path, program, sent):
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    (tmp_path / "hangs.py").write_text(REWARD.format(pipe=str(pipe)))
    line = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(line, env=environment(), start_new_session=True) as it:
        with pipe.open() as told:
            child = int(told.readline())
        assert alive(child)
        it.send_signal(sent)
        it.wait(PATIENCE_S)
    try:
        eventually(lambda: not alive(child), PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


# --- on clusters: tests/cluster ---

PLAN = fake_plans.plan(3, ("a", "b", "c"), seeds=60, episodes=3)


def launcher(transport):
    return LocalLauncher("support.fake_worker:main", transport)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_workers_outlive_a_coordinator_that_stands_still_for_45_s_and_go_on(tmp_path, transport):
    run = tmp_path / "run"
    events = stood_still(coordinator(run, "process.test_outliving", "PLAN", transport), run)
    assert result_hash(fold(events)) == result_hash(fold(conducted.run(tmp_path / "alone", PLAN)))
