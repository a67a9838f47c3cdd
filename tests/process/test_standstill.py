"""A coordinator that stands still for 45 s, with workers of this machine; on clusters: tests/cluster."""

import subprocess
import sys

import pytest
from support import conducted, fake_plans
from support.children import environment
from support.standstill import stood_still

from esper_ab.analysis.trained_by import result_hash
from esper_ab.journal.fold import fold

PLAN = fake_plans.plan(3, ("a", "b", "c"), seeds=60, episodes=3)
COORDINATOR = """
import sys
from pathlib import Path
from support import fake_plans
from esper_ab.control import experiment_run
from esper_ab.launchers.local import LocalLauncher

if __name__ == "__main__":
    plan = fake_plans.plan(3, ("a", "b", "c"), seeds=60, episodes=3)
    experiment_run.run(plan, Path(sys.argv[1]), LocalLauncher("support.fake_worker:main", sys.argv[2]), ())
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_workers_outlive_a_coordinator_that_stands_still_and_go_on(tmp_path, transport):
    run = tmp_path / "run"
    run.mkdir()
    coordinator = subprocess.Popen([sys.executable, "-c", COORDINATOR, str(run), transport], env=environment())
    events = stood_still(coordinator, run)
    assert result_hash(fold(events)) == result_hash(fold(conducted.run(tmp_path / "alone", PLAN)))
