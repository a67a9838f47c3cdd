"""`--chaos` in an experiment of real processes: what was planned happens, is told, and changes no result."""

from __future__ import annotations

from collections import Counter

import pytest
from click.testing import CliRunner
from support import fake_plans
from support.audited import findings
from support.fault_checker import check

from esper_ab.analysis.result_hash import result_hash
from esper_ab.commands.launch import command
from esper_ab.control import experiment_run
from esper_ab.control.chaos import Chaos, plan_faults
from esper_ab.control.rules.liveness import Limits
from esper_ab.journal.events import Ledger
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import fold
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.launchers.local import LocalLauncher

LIMITS = Limits(floor_s=3.0, start_up_s=60.0)
DEATHS = ("worker_death", "hung_worker")


@pytest.mark.parametrize("rng_seed", [7, 8])
def test_a_rehearsal_changes_no_result(rng_seed, tmp_path):
    plan = fake_plans.plan(episodes=4, replicates=2, steps=1)
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    calm.mkdir()
    stormy.mkdir()
    experiment_run.run(plan, calm, InlineLauncher("support.fake_worker:main_in_thread"), ())
    chaos = Chaos(plan_faults(rng_seed, [spec for block in plan.blocks for spec in block.runs]))
    experiment_run.run(plan, stormy, LocalLauncher("support.fake_worker:main"), (), LIMITS, chaos)

    events = check(stormy, result_hash(fold(read(calm / JOURNAL_NAME))))
    entries = [event for event in events if isinstance(event, Ledger)]
    told = [entry for entry in entries if entry.category == "chaos"]
    assert [(entry.run_name, entry.episode) for entry in told] == [
        (fault.run_name, fault.milestone - 1) for fault in chaos.struck
    ]
    assert len(chaos.struck) >= 3, chaos.summary
    followed = Counter(entry.run_name for entry in entries if entry.category in DEATHS)
    unexplained = followed - Counter(entry.run_name for entry in told)
    assert set(unexplained) <= {""}, "a fake worker may have done all its work as the signal reaches it"
    assert followed.total() >= 2
    assert "chaos" in {finding.kind for finding in findings(events)}


def test_there_is_nobody_to_kill_in_a_thread(tmp_path):
    asked = ["--chaos", "1", "--launcher", "inline", "--out", str(tmp_path), "--groups", "a=wait,b=random", "--dry-run"]
    result = CliRunner().invoke(command, asked)
    assert "--chaos kills worker processes, and this launcher has none" in str(result.exception)
    assert result.stdout == ""


@pytest.mark.slow
@pytest.mark.timeout(1800)  # nine starts of workers with torch, on a machine that may be crowded
def test_the_command_prints_the_hash_of_a_run_without(tmp_path):
    asked = [
        "--groups", "a=shaped,b=random", "--task", "synthetic", "--replicates", "1", "--episodes", "5", "--steps", "6",
        "--n-envs", "2", "--eval-hosts", "2", "--out", str(tmp_path), "--quiet",
    ]  # fmt: skip
    calm = CliRunner().invoke(command, [*asked, "--name", "calm"], catch_exceptions=False)
    stormy = CliRunner().invoke(command, [*asked, "--name", "stormy", "--chaos", "3"], catch_exceptions=False)
    expected = result_hash(fold(read(tmp_path / "calm" / JOURNAL_NAME)))
    assert calm.exit_code == 0
    *_, rehearsed, printed = stormy.stdout.splitlines()
    assert printed == f"result hash: {expected}"
    assert rehearsed.startswith("chaos: 4 faults rehearsed")
