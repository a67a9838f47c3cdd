import os
import select
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from esper_ab.contracts import users_shell
from esper_ab.contracts.trainer import OutcomeSource
from workers.kinds.trainer import running
from workers.kinds.trainer.idling import StillRunning, Watch
from workers.kinds.trainer.outcome_sources.left import Left
from workers.kinds.trainer.outcome_sources.read import read_outcome
from workers.kinds.trainer.outcome_sources.wandb_log import WANDB_FILE

JSON = OutcomeSource("result.json", "return")


def no_sign() -> None: ...


def run(
    tmp_path: Path, code: str, *arguments: str, on_sign_of_life: Callable[[], None] = no_sign, key: str = ""
) -> str:
    """Run Python code as a script; what it wrote."""
    source = OutcomeSource("", key, "wandb") if key else JSON
    command = [sys.executable, "-c", code, *arguments]
    shell = users_shell.of_this_process()
    variables = running.environment(shell, source, tmp_path, {})
    running.run_script(command, str(tmp_path), variables, (tmp_path, "run.log"), Watch(on_sign_of_life), shell)
    return (tmp_path / "run.log").read_text()


def test_the_log_of_a_script_has_its_command_and_output(tmp_path: Path) -> None:
    """The words as a shell takes them, so that anybody can repeat the run."""
    code = "import sys; print('one'); print('two', file=sys.stderr)"
    command, *output = run(tmp_path, code, "a b").splitlines()
    assert shlex.split(command) == ["$", sys.executable, "-c", code, "a b"]
    assert output == ["one", "two"]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        (
            "print('step 7'); raise ValueError('lr must be positive')",
            r"ended with exit status 1: .*: lr must be positive$",
        ),
        ("open(FOLDER, 'w')", r"IsADirectoryError.*; \{out\} is a folder: .* \{out\}/result.json"),
        ("raise SystemExit(3)", "exit status 3: it wrote nothing"),
    ],
)
def test_a_failing_script_is_reported_with_its_last_lines(tmp_path: Path, code: str, complaint: str) -> None:
    (tmp_path / "run.log").write_text("of an earlier life\n")
    with pytest.raises(running.ScriptFailed, match=f"(?s){complaint}") as failure:
        run(tmp_path, code.replace("FOLDER", repr(str(tmp_path))))
    assert "earlier life" not in str(failure.value)


def failed_in(folder: Path, root: Path, *words: str) -> str:
    """Return why a program fails that runs in `folder`, where `root` has the files of runs."""
    folder.mkdir()
    with pytest.raises(running.ScriptFailed) as failed:
        running.run_script(
            list(words), str(folder), dict(os.environ), (root, "log"), Watch(), users_shell.of_this_process()
        )
    return str(failed.value)


def test_the_error_about_a_missing_relative_path_suggests_another_folder(tmp_path: Path) -> None:
    opens = (sys.executable, "-c", "open('data.csv')")
    assert "values of settings are passed as they are: put {out} in" in failed_in(tmp_path / "out", tmp_path, *opens)
    elsewhere = tmp_path / "root"
    elsewhere.mkdir()
    assert "{out}" not in failed_in(tmp_path / "users", elsewhere, *opens)


@pytest.mark.parametrize("words", ["make train", "make"])
def test_the_error_about_a_missing_makefile_suggests_another_folder(tmp_path: Path, words: str) -> None:
    assert "put {out} in to run where you are" in failed_in(tmp_path / "out", tmp_path, *words.split())


def test_the_error_about_a_missing_program_suggests_no_other_folder(tmp_path: Path) -> None:
    problem = failed_in(tmp_path / "out", tmp_path, "no-such-program")
    assert problem.endswith("exit status 127: no-such-program: No such file or directory")


BUSY = "import pathlib, sys\nwhile not pathlib.Path(sys.argv[1]).exists(): pass"
BY_ANOTHER = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', *sys.argv[1:]], start_new_session=True)"


@pytest.mark.parametrize("arguments", [(BUSY,), (BY_ANOTHER, BUSY)])
def test_a_script_is_working_while_any_of_its_processes_uses_the_cpu(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """It ends when it has been told that a sign was given for it."""
    sign = tmp_path / "told"
    run(tmp_path, *arguments, str(sign), on_sign_of_life=sign.touch)
    assert sign.exists()


def test_an_exception_in_the_callback_ends_the_script(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, pathlib\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\nwhile True: pass"

    def cancel() -> None:
        if pid.exists():
            raise InterruptedError("cancelled")

    with pytest.raises(InterruptedError):
        run(tmp_path, code, on_sign_of_life=cancel)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_script_that_is_over_is_ended_without_a_failure(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, pathlib\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\nwhile True: pass"
    words = [sys.executable, "-c", code]
    log = (tmp_path, "log")
    with pytest.raises(StillRunning):
        running.run_script(
            words, str(tmp_path), dict(os.environ), log, Watch(is_over=pid.exists), users_shell.of_this_process()
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_script_ends_with_its_killed_worker(tmp_path: Path) -> None:
    """A fork is the worker: it is killed while its script runs."""
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    code = f"import os, signal\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\nsignal.pause()"
    worker = f"""
import shlex
import sys
from pathlib import Path
from esper_ab.contracts import users_shell
from workers.kinds.trainer import running
from workers.kinds.trainer.idling import Watch
words, shell = [sys.executable, "-c", {code!r}], users_shell.of_this_process()
running.run_script(words, "/", {{}}, (Path({str(tmp_path)!r}), "run.log"), Watch(), shell)
"""
    pid = os.spawnve(
        os.P_NOWAIT,
        sys.executable,
        [sys.executable, "-c", worker],
        {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    script_descriptor = os.pidfd_open(int(fifo.read_text()))
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    end = select.poll()
    end.register(script_descriptor, select.POLLIN)
    assert end.poll(30_000)
    os.close(script_descriptor)


STEPS = """
import wandb
run = wandb.init(project="mine", config={"lr": 3})
wandb.define_metric("loss", summary="min")
for step in range(wandb.config.lr):
    wandb.log({"return": 10.0 * step, "other": -1.0, "eval": {"score": step + 0.5}}, step=step)
wandb.log({"video": wandb.Video("no.mp4")})
run.finish()
"""
PARTS = """
import copy
import wandb, wandb.sdk, wandb.sdk.wandb_run
from wandb.errors import CommError
from wandb.sdk.lib import RunDisabled
assert tuple(map(int, wandb.__version__.split("."))) > (0, 12)
assert not isinstance(wandb.run, RunDisabled)
wandb.alert("title", level=wandb.AlertLevel.WARN)
wandb.util.generate_id(), wandb.Api().runs("mine")
class Mine(wandb.Table): ...
copy.deepcopy(Mine(columns=["a"])).add_data(1)
try:
    raise CommError("lost")
except (wandb.errors.CommError, wandb.Error):
    wandb.log({"ret": 1})
"""
TENSORBOARD = """
import sys; sys.path.insert(0, ".")
import wandb, tensorboardX
wandb.init(sync_tensorboard=True)
tensorboardX.SummaryWriter().add_scalar("charts/episodic_return", 12.5, 3)
"""
CALLBACK = """
import sys; sys.path.insert(0, ".")
import wandb
from stable_baselines3.common.callbacks import BaseCallback
from wandb.integration.sb3 import WandbCallback
class Mine(WandbCallback):
    def _on_step(self):
        wandb.log({"ret": self.verbose})
        return super()._on_step()
callback = Mine(verbose=2, gradient_save_freq=100, model_save_path="models/x")
assert isinstance(callback, BaseCallback) and callback._on_step() is True
"""
LIBRARIES = {
    "tensorboardX.py": "class SummaryWriter:\n    def add_scalar(self, tag, value, step): ...\n",
    "stable_baselines3/common/callbacks.py": "class BaseCallback:\n    def __init__(self, verbose=0): "
    "self.verbose = verbose\n",
}


@pytest.mark.parametrize(
    ("code", "key", "outcome"),
    [
        pytest.param(STEPS, "return", 20.0, id="the last one that is logged"),
        pytest.param(STEPS, "eval.score", 2.5, id="also inside of others"),
        pytest.param(PARTS, "ret", 1.0, id="parts can be imported, called, subclassed and caught"),
        pytest.param(TENSORBOARD, "charts/episodic_return", 12.5, id="a scalar of a synced writer"),
        pytest.param(CALLBACK, "ret", 2.0, id="the callback for stable-baselines is one of its and does nothing"),
    ],
)
def test_a_value_logged_with_wandb_is_the_outcome(tmp_path: Path, code: str, key: str, outcome: float) -> None:
    for name, text in LIBRARIES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run(tmp_path, code, key=key)
    assert read_outcome(OutcomeSource("", key, "wandb"), Left(tmp_path)) == outcome


def test_values_that_are_not_numbers_are_ignored_by_the_wandb_stub(tmp_path: Path) -> None:
    code = """
import numpy, torch, wandb
wandb.log({"ret": numpy.array([1.5])})
wandb.log({"ret": torch.tensor([2.5])})
wandb.summary["ret"] = numpy.float32(3.5)
for nothing in (None, "best", [4.5], numpy.zeros(2), torch.zeros(2), wandb.Histogram([1, 2]), 10**400):
    wandb.log({"ret": nothing})
"""
    run(tmp_path, code, key="ret")
    assert (tmp_path / WANDB_FILE).read_text().split() == ["1.5", "2.5", "3.5"]


def test_a_command_in_a_message_can_be_typed_again():
    assert running.shown(["python", "/my agent/bad.py", "--seed", "1"]) == "python '/my agent/bad.py' --seed 1"
