"""Scripts: options in them exist, numbers of docs have their commands, and a sign-off passes only where it may."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks import coordination
from benchmarks.worlds import Case, assert_equal
from refresh_docs import PRODUCTS, ROOT, commits_since
from support.command_lines import check_command_line

SCRIPTS = ROOT / "scripts"
SHELL = sorted(path for path in SCRIPTS.iterdir() if path.is_file() and path.read_text().startswith("#!"))
SMI = "#!/bin/sh\ncase $1 in -L) echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)';; *) echo 570.12;; esac\n"


def _commands(script: Path) -> list[str]:
    lines = script.read_text().replace("\\\n", " ").splitlines()
    return [line.removeprefix("exec .venv/bin/") for line in lines if "-m esper_ab.launch" in line]


@pytest.mark.parametrize(("script", "line"), [(path.name, line) for path in SHELL for line in _commands(path)])
def test_a_shell_script_gives_options_that_exist(script, line):
    """So no script has to be run to find that out."""
    ((name, params),) = check_command_line(line.replace(' "$@"', ""))
    assert name == "launch", script
    assert params["groups"] or params["what"]


def test_fake_workers_of_the_coordinators_benchmark_are_what_a_coordinator_takes_for_workers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where its experiment is
    found = coordination.cell(blocks=2, runs=2, n_envs=2, episodes=4)
    assert found["rounds"] == 3
    assert found["bytes_per_record"] > 500
    assert 0.0 < found["wait_ms"]["median"] <= found["wait_ms"]["max"]
    assert list(tmp_path.iterdir()) == []


def test_a_bank_trains_what_the_benchmarks_plain_modules_in_a_loop_train():
    assert_equal(Case(task="digits", n_envs=7, live_seeds=3), torch.float64, 1e-9)


def test_every_file_of_numbers_belongs_to_one_product_or_names_the_commit_that_made_it():
    listed = [file for product in PRODUCTS.values() for file in product.files]
    assert len(listed) == len(set(listed))
    there = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "evidence" / "benchmarks").iterdir()]
    assert [file for file in there if file not in listed and " at commit `" not in (ROOT / file).read_text()] == []


def test_every_command_and_every_piece_of_code_of_a_product_exists():
    for name, product in PRODUCTS.items():
        assert (ROOT / product.command[0]).is_file(), name
        assert all((ROOT / code).exists() for code in product.code), name


def test_a_commit_that_touches_the_code_makes_a_file_of_numbers_older(tmp_path):
    def older_after(name: str) -> int | None:
        (tmp_path / name).write_text(f"{(tmp_path / name).exists()}")
        words = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        for command in (("add", name), (*words, "commit", "-qm", name)):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        return commits_since(tmp_path, ("numbers",), ("code",))

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert [older_after(name) for name in ("code", "numbers", "other", "code")] == [None, 0, 0, 1]


def sign_off(folder: Path, *, smi: str, python: str) -> subprocess.CompletedProcess[str]:
    for name, text in (("nvidia-smi", smi), ("python", python)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    around = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(folder / "python")}
    return subprocess.run([SCRIPTS / "smoke_cuda"], env=around, capture_output=True, text=True, check=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch can use a GPU here")
def test_the_sign_off_fails_with_both_versions_where_torch_cannot_use_a_gpu(tmp_path):
    done = sign_off(tmp_path, smi=SMI, python=f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert done.returncode == 1
    assert "570.12" in done.stderr
    assert torch.__version__ in done.stderr


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a GPU here")
def test_without_a_gpu_the_tests_are_left_to_skip(tmp_path):
    done = sign_off(tmp_path, smi="#!/bin/sh\nexit 9\n", python='#!/bin/sh\necho "$@"\n')
    assert (done.returncode, done.stdout.strip()) == (0, "-m pytest tests/gpu -m gpu -rs")
