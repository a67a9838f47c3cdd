"""Scripts: options in them exist, and numbers of docs have their commands."""

import subprocess
from pathlib import Path

import pytest
import torch
from benchmarks import coordination
from benchmarks.worlds import Case, assert_equal
from refresh_docs import PRODUCTS, ROOT, commits_since
from support.command_lines import check_command_line

SCRIPTS = ROOT / "scripts"
SHELL = sorted(path for path in SCRIPTS.iterdir() if path.is_file() and path.read_text().startswith("#!"))


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
