"""Shell completion, asked as the shells ask: real bash, zsh and fish where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from esper_ab.commands._shells import PROGRAM, VARIABLE

BIN = Path(sys.executable).parent
CORES = range(len(os.sched_getaffinity(0)))


def complete(line: str, folder: Path) -> list[str]:
    """What bash would show for `line` with the cursor at its end; the words are as bash would have them."""
    environment = {
        **os.environ, VARIABLE: "bash_complete", "ESPER_AB_LINE": line, "ESPER_AB_POINT": str(len(line.encode())),
        "ESPER_AB_BREAKS": " \t\n\"'><=;|&(:",
    }  # fmt: skip
    done = subprocess.run([BIN / PROGRAM], env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return [one.partition(",")[2] for one in done.stdout.split()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for at, name in enumerate(("experiments/old", "experiments/new", "elsewhere/one")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "events.jsonl").touch()
        os.utime(tmp_path / name / "events.jsonl", (at, at))
    (tmp_path / "experiments" / "sweep").mkdir()
    for name in ("runs/a-b-10/", "runs/a-b-2/", "logs/a-b-2.log", "logs/a-b-10.log", "logs/w00.log", "console.log"):
        path = tmp_path / "experiments" / "new" / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name.endswith("/") else path.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("esper-ab lau", ["launch"]),
        ("esper-ab launch --repl", ["--replicates"]),
        (
            "esper-ab report ",
            ["experiments/new", "experiments/old", "experiments/sweep/", "elsewhere/", "experiments/"],
        ),
        ("esper-ab report experiments/n", ["experiments/new"]),
        ("esper-ab gc experiments/new exp", ["experiments/"]),
        ("esper-ab status elsewhere/", ["elsewhere/one"]),
        ("esper-ab launch --groups shaped,wa", ["shaped,wait"]),
        ("esper-ab launch --groups mine=spa", ["sparse"]),  # behind bash's last break
        ("esper-ab launch --set ppo.l", ["ppo.lr=", "ppo.lr_end="]),
        ("esper-ab launch --set growth.gates=", ["permissive", "strict"]),
        ("esper-ab launch --group fast:ppo.lr=1,ppo.clip", ["1,ppo.clip="]),
        ("esper-ab launch --groups shaped,x=wait --group x", ["x:"]),
        ("esper-ab launch --groups shaped,wait --control wa", ["wait"]),
        ("esper-ab launch --slots early mid --placement alt", ["alternate"]),
        ("esper-ab launch --task dig", ["digits", "digits_easy"]),
        ("esper-ab launch --slots ", ["early", "mid", "late"]),
        ("esper-ab launch --slots early l", ["late"]),
        ("esper-ab launch --slots early,", ["early,mid", "early,late"]),
        ("esper-ab launch --task synthetic --slots ", ["early", "late"]),
        ("esper-ab launch --slots early --groups wa", ["wait"]),
        ("esper-ab heuristic --slots early m", ["mid"]),
        ("esper-ab launch --devices cp", ["cpu", *(f"cpu:{core}" for core in CORES)]),
        ("esper-ab launch --devices cpu:0 cpu:", [f"{core}" for core in CORES[1:]]),  # behind bash's last break
        ("esper-ab launch --amp b", ["bf16"]),
        ("esper-ab launch --track wandb,t", ["wandb,tensorboard"]),
        ("esper-ab logs experiments/new ", ["a-b/2", "a-b/10", "w00", "console"]),
        ("esper-ab logs experiments/new a-b/1", ["a-b/10"]),
        ("esper-ab fetch cif", ["cifar10"]),
        ("esper-ab completion z", ["zsh"]),
        ("esper-ab launch --name 'half a na", []),
    ],
)
def test_what_is_offered(folder: Path, line: str, expected: list[str]) -> None:
    assert complete(line, folder) == expected


@pytest.mark.parametrize(("line", "offered"), [
    ("esper-ab launch --set ppo.", "plain,ppo.lr="), ("esper-ab launch --slots ", "plain,mid"),
    ("esper-ab launch --track ", "plain,mlflow"), ("esper-ab logs experiments/new a", "plain,a-b/2"),
])  # fmt: skip
def test_completion_is_quick_and_loads_nothing_heavy(folder: Path, line: str, offered: str) -> None:
    show = (
        "import sys\nfrom esper_ab.commands.cli import main\nsys.argv[0] = 'esper-ab'\n"
        "try:\n    main()\nfinally:\n    print({name.partition('.')[0] for name in sys.modules}, file=sys.stderr)\n"
    )
    environment = os.environ | {
        VARIABLE: "bash_complete", "ESPER_AB_LINE": line, "ESPER_AB_POINT": str(len(line)), "ESPER_AB_BREAKS": "=",
    }  # fmt: skip
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", show], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert time.monotonic() - begin < 10.0
    assert offered in done.stdout.splitlines()
    loaded = eval(done.stderr.strip().splitlines()[-1])
    assert not loaded & {"torch", "numpy", "scipy", "matplotlib", "duckdb", "zmq", "msgpack", "rich"}


def script(shell: str) -> str:
    done = subprocess.run([BIN / PROGRAM, "completion", shell], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_its_shell(tmp_path: Path, shell: str) -> None:
    text = script(shell)
    assert PROGRAM in text
    assert VARIABLE in text
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        checked = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True, timeout=60)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_bash_completes_with_it(folder: Path) -> None:
    """bash breaks `--set ppo.l` nowhere, and `--group a:ppo.cl` at the colon: what it replaces is the last piece."""
    asked = r"""
source ./script
COMP_WORDBREAKS=":="
try() { COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=1 COMPREPLY=()
        _esper_ab_completion esper-ab; printf '%s\n' "${COMPREPLY[*]}"; }
try "esper-ab report experiments/n"
try "esper-ab launch --group a:ppo.cl"
"""
    (folder / "script").write_text(script("bash"))
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", asked], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == ["experiments/new", "ppo.clip="]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes_with_it(folder: Path) -> None:
    (folder / "script").write_text(script("fish"))
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(
        ["fish", "-c", "source ./script; complete -C 'esper-ab launch --set ppo.l'"], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["ppo.lr="]
