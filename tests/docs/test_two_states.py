"""docs/your-trainer.md: the example of two states of the code prints what the page shows."""

import os
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PROGRAM = DOCS / "examples" / "states" / "two_states"


def test_the_example_prints_the_lines_of_the_page(tmp_path):
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "COLUMNS": "100",
    }
    ended = subprocess.run([PROGRAM], env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    printed = " ".join(ended.stdout.split())
    page = (DOCS / "your-trainer.md").read_text(encoding="utf-8")
    shown = page.partition("types this command. It prints:\n\n")[2].partition("\n\n")[0]
    parts = [" ".join(part.split()) for part in shown.split("…")]
    assert len(parts) == 2
    assert [part for part in parts if part not in printed] == []


def test_the_page_shows_the_command_of_the_example():
    command = PROGRAM.read_text(encoding="utf-8").splitlines()[-1].removesuffix(" --quiet")
    assert f"\n{command}\n" in (DOCS / "your-trainer.md").read_text(encoding="utf-8")
