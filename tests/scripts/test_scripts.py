"""Scripts use existing options; every file of benchmark numbers has a command that makes it, every page its numbers."""

import importlib
import json
import subprocess
from pathlib import Path

import bench
import pytest
import torch
from benchmarks import coordination, pages
from benchmarks.worlds import Case, assert_equal
from refresh_docs import PRODUCTS, ROOT, commits_since
from support.commands.command_lines import check_command_line

SCRIPTS = ROOT / "scripts"
EXCEPTIONS = {"docs/evidence/benchmarks/curves.json"}  # read by scripts/outcome_windows
SHELL = sorted(path for path in SCRIPTS.iterdir() if path.is_file() and path.read_text().startswith("#!"))


def _commands(script: Path) -> list[str]:
    lines = script.read_text().replace("\\\n", " ").splitlines()
    return [line.removeprefix("exec .venv/bin/") for line in lines if "-m esper_ab.launch" in line]


@pytest.mark.parametrize(("script", "line"), [(path.name, line) for path in SHELL for line in _commands(path)])
def test_a_shell_script_uses_existing_options(script, line):
    """Checked without running the script."""
    ((name, params),) = check_command_line(line.replace(' "$@"', ""))
    assert name == "launch", script
    assert params["groups"] or params["what"]


def test_the_coordination_benchmark_runs_with_its_fake_workers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where its experiment is
    cell = coordination.cell(blocks=2, runs=2, n_envs=2, episodes=4)
    assert cell["rounds"] == 3
    assert cell["bytes_per_record"] > 500
    assert 0.0 < cell["wait_ms"]["median"] <= cell["wait_ms"]["max"]
    assert list(tmp_path.iterdir()) == []


def test_a_bank_trains_like_a_loop_over_plain_modules():
    assert_equal(Case(task="digits", n_envs=7, live_seeds=3), torch.float64, 1e-9)


def test_every_stored_result_belongs_to_one_script():
    listed_files = [file for product in PRODUCTS.values() for file in product.files]
    assert len(listed_files) == len(set(listed_files))
    existing_files = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "evidence" / "benchmarks").iterdir()
    }
    assert existing_files - {*listed_files} <= EXCEPTIONS


@pytest.mark.parametrize("part", [part for part in bench.PARTS if (bench.DOCS / f"{part}.md").exists()])
def test_a_benchmark_page_shows_its_stored_record(part):
    record = json.loads((bench.DOCS / f"{part}.json").read_text())
    module = importlib.import_module(f"benchmarks.{part}")
    assert bench.page(part, module, record) == (bench.DOCS / f"{part}.md").read_text()


def test_the_page_on_scaling_shows_the_stored_records():
    page = pages.PAGE.read_text()
    assert pages.with_tables(page) == page
    assert pages.with_tables(page.replace("records/s", "")) == page


def test_the_command_and_code_behind_every_stored_result_exist():
    for name, product in PRODUCTS.items():
        assert (ROOT / product.command[0]).is_file(), name
        assert all((ROOT / code).exists() for code in product.code), name


def test_the_age_of_a_stored_result_counts_commits_to_its_code(tmp_path):
    def older_after(name: str) -> int | None:
        (tmp_path / name).write_text(f"{(tmp_path / name).exists()}")
        options = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        for command in (("add", name), (*options, "commit", "-qm", name)):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        return commits_since(tmp_path, ("numbers",), ("code",))

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert [older_after(name) for name in ("code", "numbers", "other", "code")] == [None, 0, 0, 1]
