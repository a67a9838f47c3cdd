"""Working directories with modules named like ours or like our dependencies: none of them is executed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands.progress_lines import without_progress

from esper_ab.contracts import own_packages
from esper_ab.journal.load import load

TRAP = """
from pathlib import Path
Path({marker!r}).write_text(__name__)
raise SystemExit(99)
"""
REWARD = """
import beside
from workers.kinds.growth.facts import StepFacts


def reward(facts: StepFacts, settings):
    return beside.SCALE * facts.val_acc
"""
EXPERIMENT = """
from esper_ab import create_experiment


def get_experiment():
    return (
        create_experiment("in_file").add_variant("random").add_variant("wait").set_runs_per_variant(2)
        .set_base_config(task="synthetic", episodes=1, steps=4, n_envs=2, eval_episodes=2).build()
    )
"""
SCRIPT_WITH_FOREIGN_IMPORT = """
import sys
import workers
from esper_ab import load_experiment, run_ab_test
from my_experiment import get_experiment

try:
    run_ab_test(get_experiment(), output_dir="experiments", launcher="inline", verbose=False)
except Exception as error:
    print(type(error).__name__, error)
try:
    load_experiment(sys.argv[1]).policy("wait", 0)
except Exception as error:
    print(type(error).__name__, error)
results = run_ab_test(get_experiment(), output_dir="experiments", verbose=False)
print(len(results), workers.OF_THE_USER)
"""
SMALL = (
    "--task",
    "synthetic",
    "--episodes",
    "1",
    "--steps",
    "4",
    "--n-envs",
    "2",
    "--seeds",
    "2",
    "--eval-episodes",
    "2",
    "--quiet",
)
LAUNCH = (sys.executable, "-m", "esper_ab.launch")
INSTALLED = (str(Path(sys.executable).with_name("esper-ab")),)


def write_foreign_workers(folder: Path, text: str) -> None:
    """Write a foreign package named `workers`."""
    (folder / "workers").mkdir()
    (folder / "workers" / "__init__.py").write_text(text)


class Folder:
    """A working directory with trap modules that record whether one was executed."""

    def __init__(self, path: Path, *traps: str) -> None:
        self.path = path
        self._marker = path / "executed"
        for trap in traps:
            (path / trap).parent.mkdir(exist_ok=True)
            (path / trap).write_text(TRAP.format(marker=str(self._marker)))

    def output_of(self, *command: str, status: int = 0) -> str:
        """Run the command, check its exit status and return stdout, or stderr on failure."""
        result = subprocess.run(command, cwd=self.path, capture_output=True, text=True, timeout=280, check=False)
        executed = self._marker.read_text() if self._marker.exists() else ""
        assert (executed, result.returncode) == ("", status), result.stdout + result.stderr
        return result.stdout if status == 0 else result.stderr


def test_a_foreign_workers_package_beside_a_reward_is_not_imported(tmp_path):
    (tmp_path / "mine.py").write_text(REWARD)
    (tmp_path / "beside.py").write_text("SCALE = 0.5\n")
    trap_folder = Folder(tmp_path, "workers/__init__.py")
    trap_folder.output_of(*LAUNCH, *SMALL, "--groups", "wait", "--group", "own:reward=mine.py:reward", "--name", "run")
    assert all(run.evaluation for run in load(tmp_path / "experiments" / "run").history.runs.values())


@pytest.mark.slow
def test_files_named_like_libraries_do_not_shadow_them_in_child_processes(tmp_path):
    trap_folder = Folder(
        tmp_path,
        "workers/__init__.py",
        "esper_ab/__init__.py",
        "queue.py",
        "signal.py",
        "numpy.py",
        "torch.py",
        "msgspec.py",
        "zmq/__init__.py",
        "tensorboard/__init__.py",
        "pickle.py",
    )
    trap_folder.output_of(
        *INSTALLED, "launch", *SMALL, "--groups", "random,wait", "--name", "run", "--track", "tensorboard"
    )
    trap_folder.output_of(*INSTALLED, "status", "--follow", "experiments/run")
    trap_folder.output_of(*INSTALLED, "track", "experiments/run", "--tensorboard")
    assert load(tmp_path / "experiments" / "run").history.ended is not None


@pytest.mark.slow
def test_worker_threads_are_refused_after_a_foreign_workers_package_was_imported(tmp_path):
    """Worker threads cannot import ours and are refused in one line; worker processes can."""
    Folder(tmp_path).output_of(*LAUNCH, *SMALL, "--groups", "random,wait", "--name", "finished")
    write_foreign_workers(tmp_path, "OF_THE_USER = True\n")
    (tmp_path / "my_experiment.py").write_text(EXPERIMENT)
    (tmp_path / "script.py").write_text(SCRIPT_WITH_FOREIGN_IMPORT)
    inline, policy, ran_text = (
        Folder(tmp_path).output_of(sys.executable, "script.py", "experiments/finished").splitlines()[-3:]
    )
    reason = (
        f"this process has imported another package `workers` from {tmp_path}/workers/__init__.py, but "
        f"{own_packages.folder('workers')} is needed; use a process that has not imported that package"
    )
    assert inline == f"UsageError launcher inline: {reason}, or use launcher local"
    assert policy == f"UsageError {reason}"
    assert ran_text.endswith(" True")


def test_a_foreign_workers_package_imported_at_start_up_is_reported(tmp_path):
    write_foreign_workers(tmp_path, "")
    (tmp_path / "sitecustomize.py").write_text("import workers\n")
    result = subprocess.run(
        own_packages.child_command("workers.kinds.growth.commands.fetch", "digits"),
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (line,) = without_progress(result.stderr)
    assert line.startswith(f"error: this process has imported another package `workers` from {tmp_path}/workers/")
    assert (result.returncode, result.stdout) == (2, "")


@pytest.mark.parametrize(
    "foreign_text", ["OF_ANOTHER = 1", "", None], ids=["written over", "written over, empty", "removed"]
)
def test_a_distribution_that_overwrote_our_package_is_reported_with_a_remedy(tmp_path, foreign_text):
    """In site-packages, one distribution can overwrite or remove the files of another."""
    contracts = tmp_path / "esper_ab" / "contracts"
    contracts.mkdir(parents=True)
    (tmp_path / "esper_ab" / "__init__.py").touch()
    shutil.copy(own_packages.__file__, contracts)
    if foreign_text is not None:
        write_foreign_workers(tmp_path, foreign_text)
    child = [sys.executable, "-P", str(contracts / "own_packages.py"), "0", "workers.commands.describe"]
    result = subprocess.run(child, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert re.fullmatch(r"error: esper-ab's package 'workers' is missing in .*--force-reinstall.*\n", result.stderr)
