"""docs/python.md, other-numbers.md and evidence/shaping.md: blocks run unchanged, and match the example files."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands.in_process import stdout_of

from esper_ab.formats.column_names import COLUMNS
from esper_ab.readers.csv_file import read_csv

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHAPING = DOCS / "examples" / "shaping" / "experiment.toml"


def blocks(page: str, languages: str) -> list[tuple[str, str]]:
    """The language and text of each block, in order."""
    return re.findall(rf"```({languages})\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Write the files that blocks name, run all other blocks as one script, and return its folder and output."""
    folder = tmp_path_factory.mktemp("page")
    for _, text in blocks("python.md", "python"):
        file_name = re.match(r"# (\w+\.py)\n", text)
        with (folder / (file_name[1] if file_name else "page.py")).open("a") as file:
            file.write(f"{text}\n")
    ended = subprocess.run([sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stderr
    return folder, ended.stdout


def test_the_blocks_of_the_python_page_run_in_order(executed):
    folder, output = executed
    assert "slow: 2 of 2 runs" in output
    assert "fast: 2 of 2 runs" in output
    experiment_dir = folder / "experiments" / "rates"
    assert (experiment_dir / "runs" / "fast-1" / "config.toml").is_file()
    settings = (experiment_dir / "experiment.toml").read_text()
    assert '[record.about.variants.fast]\ndescription = "Ten times as much"' in settings


def test_the_function_on_the_python_page_gives_the_printed_answer(executed):
    _, output = executed
    stated = re.findall(r"^    (high is better .*\n    BETTER .*)$", (DOCS / "python.md").read_text(), re.MULTILINE)
    assert len(stated) == 1
    assert stated[0].replace("\n    ", "\n") in output


@pytest.mark.parametrize("line", [line for _, text in blocks("python.md", "sh") for line in text.splitlines()])
def test_the_commands_of_the_python_page_can_be_run(executed, line):
    folder, _ = executed
    assert stdout_of(*shlex.split(line)[1:], folder=folder)


def test_the_csv_example_of_the_page_can_be_read(tmp_path):
    (_, table), *_ = blocks("other-numbers.md", "csv")
    (tmp_path / "results.csv").write_text(table)
    assert [row.value for row in read_csv(tmp_path / "results.csv").rows] == [71.25, 69.5, 74.0, None]
    assert all(f"`{column}`" in (DOCS / "other-numbers.md").read_text() for column in COLUMNS)


def test_the_python_example_of_the_page_can_be_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ((_, code),) = blocks("other-numbers.md", "python")
    exec(compile(code, "other-numbers.md", "exec"), {})
    assert "The next look is after 14 seeds" in capsys.readouterr().out
    assert (tmp_path / "plan.json").exists()


def test_the_shaping_page_shows_the_code_of_its_example(tmp_path):
    (_, code), *_ = blocks("evidence/shaping.md", "python")
    for function in code.strip().split("\n\n\n"):
        assert function in SHAPING.with_name("rewards.py").read_text()
    plan = stdout_of("launch", SHAPING, "--output-dir", tmp_path, "--dry-run")
    assert "energy" in plan
    assert "8 seeds" in plan


@pytest.mark.slow
@pytest.mark.timeout(1800)  # four minutes on two free cores
def test_the_shaping_example_reports_a_rising_reward_with_a_worse_outcome(tmp_path):
    stdout_of(
        "launch", SHAPING, "--output-dir", tmp_path, "--name", "again", "--quiet", "--seeds", "6", "--rng-seed", "77"
    )
    summary = " ".join((tmp_path / "again" / "summary.txt").read_text().split())
    assert "energy is worse than gain by" in summary
    assert "energy's own reward rose in 6 of 6 runs, and by the outcome it is worse than gain" in summary
