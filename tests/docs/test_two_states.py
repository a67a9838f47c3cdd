"""docs/your-trainer.md: the example of two states of the code prints what the page shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PROGRAMS = {
    "two_states": "types this command. It prints:\n\n",
    "kept_runs": "after different changes of one line. The second time:\n\n",
}


@pytest.mark.parametrize("name", ["two_states", pytest.param("kept_runs", marks=pytest.mark.slow)])
def test_the_example_prints_the_lines_of_the_page(tmp_path, name):
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "COLUMNS": "100",
    }
    ended = subprocess.run(
        [DOCS / "examples" / "states" / name], env=variables, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    printed = " ".join(ended.stdout.split())
    page = (DOCS / "your-trainer.md").read_text(encoding="utf-8")
    shown = page.partition(PROGRAMS[name])[2].partition("\n\n")[0]
    parts = [" ".join(part.split()) for part in shown.split("…")]
    assert len(parts) >= 2
    assert [part for part in parts if part not in printed] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_shows_the_command_of_the_example(name):
    lines = (DOCS / "examples" / "states" / name).read_text(encoding="utf-8").splitlines()
    (command,) = [line.strip().removesuffix(" --quiet") for line in lines if "esper-ab launch" in line]
    assert f"\n{command}\n" in (DOCS / "your-trainer.md").read_text(encoding="utf-8")
