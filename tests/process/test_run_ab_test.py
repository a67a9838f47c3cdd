"""`run_ab_test` with real workers: successes, failures, retries, and calls from an unguarded script."""

import shlex
from pathlib import Path

import pytest
from support.coordinators.disturbed import digests
from support.processes.children import python

from esper_ab import ABExperiment, ABVariant, create_experiment, load_experiment, run_ab_test
from esper_ab.commands.logs import sources
from esper_ab.journal.load import load

pytestmark = pytest.mark.usefixtures("warm_children")
BASE = {"task": "synthetic", "episodes": 2, "steps": 3, "n_envs": 2, "devices": ["cpu:0", "cpu:1"]}
# Fails as often as the number in the file says, in any worker.
FRAGILE = """
import os
import signal
import numpy as np
from pathlib import Path

LEFT = Path({left!r})

def reward(facts, settings):
    left = int(LEFT.read_text())
    if left and len(facts.op) == 2:  # as many environments as a run has, and not the preflight
        LEFT.write_text(str(left - 1))
        {how}
    return np.nan_to_num(facts.acc_delta)
"""
RAISES = 'raise RuntimeError("the planted failure")'
DIES = "os.kill(os.getpid(), signal.SIGKILL)"


def fragile_experiment(folder: Path, failures: int, runs: int, fault: str = DIES) -> ABExperiment:
    """Return an experiment with a steady and a fragile variant; the fragile reward has `fault` `failures` times."""
    (folder / "left").write_text(str(failures))
    (folder / "fragile.py").write_text(FRAGILE.format(left=str(folder / "left"), how=fault))
    builder = create_experiment("x").add_variant("steady").add_variant("fragile", reward=f"{folder}/fragile.py:reward")
    return builder.set_runs_per_variant(runs).set_base_config(BASE).build()


@pytest.mark.slow  # workers without torch: test_restart.py; a run taken up at any point: storage/test_durable.py
def test_a_failed_run_is_restarted_to_the_same_records(tmp_path):
    calm = run_ab_test(fragile_experiment(tmp_path, 0, 1), tmp_path / "calm", launcher="inline", parallel_runs=False)
    failing_results = run_ab_test(fragile_experiment(tmp_path, 1, 1), tmp_path / "failing")
    assert all(run.success for results in (calm, failing_results) for runs in results.values() for run in runs)
    assert digests(failing_results.path) == digests(calm.path)
    assert [entry.category for entry in load(failing_results.path).history.incidents].count("restart") == 1


def test_without_retries_the_seed_of_a_failed_run_is_lost(tmp_path):
    results = run_ab_test(fragile_experiment(tmp_path, 1, 2), tmp_path, retry_failed_runs=False)
    assert results.error == ""
    assert {name: [run["success"] for run in runs] for name, runs in results.items()} == {
        "steady": [False, True],
        "fragile": [False, True],
    }
    failed_run = results["fragile"][0]
    assert "SIGKILL" in failed_run.error
    assert "in warm-up of run fragile/0" in failed_run.error
    assert "fragile/0 died once before the end of its warm-up" in results["steady"][0].error
    assert results.failure_lines[0] == "steady: 1 of 2 runs without a result, none of which failed itself"
    cancellation = "As a result, 1 of steady was cancelled or left without a partner."
    assert f"! No run of steady and 1 run of fragile was lost. {cancellation}" in results.verdict.splitlines()
    assert "No run of steady and 1 run of fragile was lost" in (results.path / "summary.txt").read_text()
    assert (failed_run.policy, failed_run.metrics["outcome"]) == (None, None)


def test_results_report_the_error_if_every_run_fails(tmp_path):
    results = run_ab_test(fragile_experiment(tmp_path, 99, 2, RAISES), tmp_path, launcher="inline")
    cause, lost_seeds, log_hint = results.error.split("; ")  # one line, and nothing is left to resume
    assert cause.startswith("worker w")
    assert "RuntimeError: the planted failure (fragile.py, line 13), in warm-up of run fragile/" in cause
    assert lost_seeds == "every seed was given up, as a retry would fail in the same way: fix it, then launch again"
    *words, experiment_dir, name = shlex.split(log_hint.removeprefix("see `").removesuffix("`"))
    assert (words, experiment_dir) == (["esper-ab", "logs"], str(results.path))
    assert name in sources(results.path, load(results.path).history)
    assert not any(run.success for runs in results.values() for run in runs)
    assert str(results).startswith(f"{tmp_path / 'x'}: worker w")
    assert (results.path / "summary.txt").read_text().count("INCOMPLETE") == 1


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory):
    """Run an experiment that trains one run at a time, in a thread."""
    variants = [ABVariant("a"), ABVariant("b", overrides={"reward": "sparse"})]
    experiment = ABExperiment("x", variants=variants, runs_per_variant=2, base_config=BASE)
    return run_ab_test(experiment, tmp_path_factory.mktemp("runs"), parallel_runs=False, launcher="inline")


def test_results_have_the_metrics_policy_and_directory_of_each_run(results):
    assert list(results) == ["a", "b"]
    run = results["b"][1]
    assert (run.variant, run.replicate, run.success, run.error) == ("b", 1, True, "")
    assert run["metrics"] is run.metrics
    assert 0.0 <= run.metrics["outcome"] <= 100.0
    assert isinstance(run.metrics["reward.sparse"], float)
    assert run.duration_s > 0.0
    assert run.policy.is_file()
    assert (run.directory / "config.toml").is_file()
    with pytest.raises(KeyError, match="a run has variant, replicate, success"):
        run["sucess"]


def test_the_verdicts_of_run_ab_test_equal_those_of_the_report(results):
    loaded_results = results.loaded
    assert loaded_results.verdicts == results.verdicts == load_experiment(results.path).verdicts
    assert list(results.verdicts) == [("a", "b")]
    assert results.verdict.splitlines()[0] in (results.path / "verdict.json").read_text()
    assert repr(results) == f"<Results {results.path} a: 2/2, b: 2/2>"


def test_non_parallel_runs_share_one_device_in_sequence(results):
    plan = load(results.path).history.plan
    assert (plan.experiment.placement, plan.experiment.max_parallel) == ("sequence", 1)
    assert {device for lane in plan.lanes for device in lane.devices} == {"cpu:0"}


# A script that spawns a process without a __main__ guard around the call is run again in that process.
SPAWNS = """
import multiprocessing
from esper_ab import ABExperiment, ABVariant, run_ab_test

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=print)
    child.start()
    child.join()
else:
    run_ab_test(ABExperiment("x", variants=[ABVariant("a"), ABVariant("b")]))
"""


def test_a_script_without_a_main_guard_fails_with_a_remedy(tmp_path):
    (tmp_path / "script.py").write_text(SPAWNS)
    result = python("script.py", folder=tmp_path)
    assert 'put the call below `if __name__ == "__main__":`' in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
