"""docs/python.md: its blocks are run in order, as they stand, in a folder of their own."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.in_process import done

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A file that a block names is written; all other Python is one script, which guards nothing by `__name__`."""
    folder = tmp_path_factory.mktemp("page")
    for language, text in BLOCKS:
        if language == "python":
            named = re.match(r"# (\w+\.py)\n", text)
            with (folder / (named[1] if named else "page.py")).open("a") as file:
                file.write(f"{text}\n")
    ended = subprocess.run([sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stderr
    return folder, ended.stdout


def test_the_blocks_run_in_order_and_leave_behind_what_they_say(executed):
    folder, said = executed
    assert "slow: 2 of 2 runs" in said
    assert "fast: 2 of 2 runs" in said
    experiment_dir = folder / "experiments" / "rates"
    assert (experiment_dir / "runs" / "fast-1" / "config.toml").is_file()
    settings = (experiment_dir / "experiment.toml").read_text()
    assert '[record.about.variants.fast]\ndescription = "Ten times as much"' in settings


@pytest.mark.parametrize("line", [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()])
def test_the_command_lines_work(executed, line):
    folder, _ = executed
    assert done(*shlex.split(line)[1:], folder=folder)
