import json
import math
import os
import select
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts import users_shell
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.trainer import OutcomeSource, read_source
from workers.kinds.trainer import script
from workers.kinds.trainer.idling import Watch
from workers.kinds.trainer.script import WANDB_FILE, read_outcome

JSON = OutcomeSource("result.json", "return")


def no_sign() -> None: ...


def run(tmp_path: Path, code: str, *arguments: str, on_sign: Callable[[], None] = no_sign, key: str = "") -> str:
    """Run Python code as a script; what it wrote."""
    source = OutcomeSource("", key, wandb=True) if key else JSON
    command = [sys.executable, "-c", code, *arguments]
    shell = users_shell.of_this_process()
    variables = script.environment(shell, source, tmp_path, {})
    script.run_script(command, str(tmp_path), variables, (tmp_path, "run.log"), Watch(on_sign), shell)
    return (tmp_path / "run.log").read_text()


def test_the_log_has_the_command_output_and_errors_of_a_script(tmp_path: Path) -> None:
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
def test_a_script_that_fails_is_reported_with_its_last_lines(tmp_path: Path, code: str, complaint: str) -> None:
    (tmp_path / "run.log").write_text("of an earlier life\n")
    with pytest.raises(script.ScriptFailed, match=f"(?s){complaint}") as failed:
        run(tmp_path, code.replace("FOLDER", repr(str(tmp_path))))
    assert "earlier life" not in str(failed.value)


BUSY = "import pathlib, sys\nwhile not pathlib.Path(sys.argv[1]).exists(): pass"
BY_ANOTHER = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', *sys.argv[1:]], start_new_session=True)"


@pytest.mark.parametrize("arguments", [(BUSY,), (BY_ANOTHER, BUSY)])
def test_a_script_counts_as_working_while_any_of_its_processes_uses_the_cpu(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """It ends when it has been told that a sign was given for it."""
    sign = tmp_path / "told"
    run(tmp_path, *arguments, str(sign), on_sign=sign.touch)
    assert sign.exists()


def test_an_exception_in_the_callback_ends_the_script(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, pathlib\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\nwhile True: pass"

    def cancelled() -> None:
        if pid.exists():
            raise InterruptedError("cancelled")

    with pytest.raises(InterruptedError):
        run(tmp_path, code, on_sign=cancelled)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_killed_worker_leaves_no_script(tmp_path: Path) -> None:
    """A fork is the worker: it is killed while its script runs."""
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    code = f"import os, signal\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\nsignal.pause()"
    worker = f"""
import shlex
import sys
from pathlib import Path
from esper_ab.contracts import users_shell
from workers.kinds.trainer import script
from workers.kinds.trainer.idling import Watch
words, shell = [sys.executable, "-c", {code!r}], users_shell.of_this_process()
script.run_script(words, "/", {{}}, (Path({str(tmp_path)!r}), "run.log"), Watch(), shell)
"""
    pid = os.spawnve(
        os.P_NOWAIT,
        sys.executable,
        [sys.executable, "-c", worker],
        {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    running = os.pidfd_open(int(fifo.read_text()))
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    end = select.poll()
    end.register(running, select.POLLIN)
    assert end.poll(30_000)
    os.close(running)


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
    assert read_outcome(OutcomeSource("", key, wandb=True), tmp_path) == outcome


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


def test_a_fresh_folder_has_no_results_of_an_earlier_attempt(tmp_path: Path) -> None:
    folder = script.fresh_folder(tmp_path, "runs/a-0/out")
    (folder / "result.json").write_text('{"return": 1}')
    assert list(script.fresh_folder(tmp_path, "runs/a-0/out").iterdir()) == []


def test_a_value_is_one_argument_without_shell_expansion() -> None:
    command = script.words_of("run --lr {lr} '{out}/a b'", {"lr": "1 $(touch x) ; 'y"}, 3, Path("/o"))
    assert command == ["run", "--lr", "1 $(touch x) ; 'y", "/o/a b"]


def test_seeds_of_rng_paths_differ_and_fit_31_bits() -> None:
    seeds = {script.seed_at(RngPath(0) / "train" / step) for step in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**31 for seed in seeds)


NUMBERS = st.floats(allow_nan=False)


def outcome_of(tmp_path: Path, source: str, text: str) -> float:
    outcome_source = read_source(source)
    (tmp_path / (outcome_source.path or WANDB_FILE)).write_text(text)
    return read_outcome(outcome_source, tmp_path)


@given(values=st.lists(NUMBERS, min_size=1))
def test_the_last_row_of_a_column_is_the_outcome(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    text = "step,return\n" + "".join(f"{step},{value!r}\n" for step, value in enumerate(values))
    assert outcome_of(tmp_path_factory.mktemp("out"), "log.csv:return", text) == values[-1]


@given(value=NUMBERS)
def test_a_nested_key_of_a_json_file_is_the_outcome(tmp_path_factory: pytest.TempPathFactory, value: float) -> None:
    folder = tmp_path_factory.mktemp("out")
    for key, written in (("x", {"x": value}), ("eval.x", {"eval": {"x": value}}), ("eval.x", {"eval.x": value})):
        assert outcome_of(folder, f"a.json:{key}", json.dumps(written)) == value


@pytest.mark.parametrize(
    ("source", "text", "outcome"),
    [
        ("a.csv:x", 'x,note\n1.5,"two\nlines"\n2.5,first\u2028half\n', 2.5),  # only ends of lines end a row
        ("a.json:x", '\ufeff{"x": 3.5}', 3.5),
        ("a.csv:x", "\ufeffx,y\n3.5,1\n", 3.5),  # a byte order mark is no text
        ("a.json:x", f'{{"x": {-(10**400)}}}', -math.inf),
        # Stable-Baselines3: monitor.csv, and progress.csv, whose last row has no evaluation.
        ("a.csv:r", '#{"t_start": 1.5, "env_id": "Pendulum-v1"}\nr,l,t\n-825.1,200,0.1\n-640.5,200,0.2\n', -640.5),
        ("a.csv:eval/mean", "time,eval/mean,rollout\n1,,5\n2,7.5,\n3,8.5,\n4,,6\n", 8.5),
        ("a.csv:#step", "#step,x\n1,2\n", 1.0),
        ("a.json:solved", '{"solved": true}', 1.0),
        ("a.json:solved", '{"solved": false}', 0.0),
        ("a.csv:solved", "solved\nTrue\nfalse\n", 0.0),
    ],
)
def test_an_outcome_is_read_from_odd_text(tmp_path: Path, source: str, text: str, outcome: float) -> None:
    assert outcome_of(tmp_path, source, text) == outcome


@pytest.mark.parametrize(
    ("source", "text", "complaint"),
    [
        ("a.json:x", '{"y": 1, "z": {"x": 2}}', "a.json: no key 'x'; available keys: y, z.x"),
        ("a.json:x.z", '{"x": 1}', "no key 'x.z'"),
        ("a.json:x", '{"x": [1]}', "x is list, not a number"),
        ("a.json:x", '{"x": ', "a.json: not JSON"),
        ("a.csv:x", "y,z\n1,2\n", "no column 'x'; available columns: y, z"),
        ("a.csv:x", "x\n", "no rows"),
        ("a.csv:y", "x,y\n1\n", "the last row has 1 cells, the header 2"),
        ("a.csv:y", "x,y\n1,\n2, \n", "y is empty in every row"),
        ("a.csv:y", "x,y\n1\n2,\n", "row 2 from the end has 1 cells, the header 2"),
        ("a.csv:y", "x,y\n1,2\n2,none\n", "y is 'none', not a number"),
        ("a.csv:y", '#{"t": 1}\nx\n1\n', "no column 'y'; available columns: x"),
        ("a.csv:y", '#{"t": 1}\n', "no column 'y'; available columns: #{"),
        ("a.csv:x", "x,y,x\n1,2,3\n", "the column name 'x' occurs twice"),
        ("a.csv:x", 'x,y\n1,"2', "a.csv: not CSV: unexpected end of data"),
        ("a.csv:x", "x\n1_0\n", "x is '1_0', not a number"),
        ("a.csv:x", "x\n\u0663.5\n", "x is '\u0663.5', not a number"),
        ("a.json:x", '{"x": "0.5"}', "x is the text '0.5', not a number; write it without quotes"),
        ("a.json:x", '{"x": 1, "x": 2}', "a.json: not JSON: the key 'x' occurs twice"),
        ("a.csv:x", "", "no column 'x'; available columns: nothing"),
        ("a.csv:x", f"x\n{'y' * 200_000}\n", "a.csv: not CSV: field larger"),
        ("a.json:x", f'{{"x": 1{"0" * 5000}}}', "a.json: not JSON"),
        ("a.json:x", "[" * 100_000, "a.json: not JSON"),
    ],
)
def test_an_unreadable_outcome_is_refused_with_the_available_names(
    tmp_path: Path, source: str, text: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint.replace(".", r"\.").replace("[", r"\[")):
        outcome_of(tmp_path, source, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", '{"return": 2.5}'),
        ("log.csv", "step,return\n1,9\n2,2.5\n"),
        ("deep/down/eval.json", '{"return": 2.5}'),
    ],
)
def test_a_name_without_a_file_is_read_from_the_only_candidate_file(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    for other_name in ("model.pt", "json", "notes.txt", WANDB_FILE):
        (tmp_path / other_name).write_text("return")
    assert read_outcome(read_source("return"), tmp_path) == 2.5


def test_a_name_in_several_files_needs_its_file(tmp_path: Path) -> None:
    for name, value in (("b.json", 1), ("a/x.json", 2)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"return": value}))
    (tmp_path / "0.csv").write_text("return\n3\n")
    with pytest.raises(ValueError, match=r"0.csv, a/x.json, b.json in \{out\} all have return; .*as in a/x.json:"):
        read_outcome(read_source("return"), tmp_path)
    outcomes = [read_outcome(read_source(f"{name}:return"), tmp_path) for name in ("b.json", "a/x.json", "0.csv")]
    assert outcomes == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("other_name", "text"),
    [
        ("config.json", '{"lr": 0.1}'),
        ("log.csv", "step,loss\n1,2\n"),
        ("config.json", "{ // no JSON"),
        ("log.csv", 'step,loss\n1,"2'),
    ],
)
def test_a_name_is_read_from_the_only_file_that_contains_it(tmp_path: Path, other_name: str, text: str) -> None:
    (tmp_path / other_name).write_text(text)
    (tmp_path / "result.csv").write_text('#{"of": "a monitor"}\nreturn\n2.5\n')
    assert read_outcome(read_source("return"), tmp_path) == 2.5


@pytest.mark.parametrize("broken", ['{"return": 1, "return": 2}', '{"return": "1"}'])
def test_a_file_with_an_unusable_value_still_makes_a_name_ambiguous(tmp_path: Path, broken: str) -> None:
    (tmp_path / "a.json").write_text(broken)
    (tmp_path / "b.json").write_text('{"return": 2.5}')
    with pytest.raises(ValueError, match=r"a.json, b.json in \{out\} all have return"):
        read_outcome(read_source("return"), tmp_path)


def test_a_name_in_no_file_is_refused_with_all_files(tmp_path: Path) -> None:
    for name in ("a.json", "b.csv"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=r"left a.json, b.csv in \{out\}, of which none has return; say which has it"):
        read_outcome(read_source("return"), tmp_path)


@pytest.mark.parametrize(
    ("source", "file_names", "complaint"),
    [
        ("return", (), r"left no \.json or \.csv file in \{out\}; it left nothing"),
        ("return", ("model.pt",), r"it left model\.pt"),
        ("a.json:x", ("sub/model.pt",), r"left no a\.json in \{out\}; it left sub/model\.pt"),
        ("wandb:x", (), "logged no number 'x' with wandb"),
    ],
)
def test_a_missing_outcome_is_refused_with_the_files_left(
    tmp_path: Path, source: str, file_names: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "sub").mkdir()
    for name in file_names:
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=complaint):
        read_outcome(read_source(source), tmp_path)
