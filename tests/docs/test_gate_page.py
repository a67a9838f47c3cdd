"""docs/gate.md: the example of three changes prints what the page shows, and the tables have every key and verdict."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from esper_ab.gate.gate_file import KEYS
from esper_ab.verdict.verdict import Verdict

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "gate.md").read_text(encoding="utf-8")
EXAMPLE = DOCS / "examples" / "gate"


def test_the_page_has_every_key():
    assert [key for key in KEYS if f"`{key}`" not in PAGE and f"[{key}]" not in PAGE] == []


def test_the_page_has_every_verdict():
    assert [verdict for verdict in Verdict if verdict not in PAGE] == []


def test_the_page_shows_the_file_of_the_example():
    assert f"```toml\n{(EXAMPLE / 'gate.toml').read_text(encoding='utf-8')}```" in PAGE


def test_scripts_use_only_variables_that_they_set_or_whose_absence_they_allow():
    """TMPDIR, for example, is unset on many machines."""
    for path in sorted(DOCS.glob("examples/**/*")):
        if not path.is_file() or not path.read_bytes().startswith(b"#!/usr/bin/env bash"):
            continue
        text = path.read_text(encoding="utf-8")
        used = set(re.findall(r"\$\{?([A-Za-z_]\w*)(?![\w:-])", text))
        set_here = set(re.findall(r"^ *(?:local |export |for )?([A-Za-z_]\w*)(?:=| in )", text, re.M))
        assert used - {"BASH_SOURCE"} <= set_here, path


@pytest.mark.slow
def test_the_example_prints_the_lines_of_the_page(tmp_path):
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
    }
    ended = subprocess.run([EXAMPLE / "three_changes"], env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    shown_lines = PAGE.partition("Of the bug, it prints:\n\n")[2].partition("\n\n")[0]
    parts = [part.strip() for part in shown_lines.replace("\n    ", "\n").split("…")]
    assert len(parts) == 5
    assert [part for part in parts if part not in ended.stdout] == []
    assert "head and base did the same in all 6 pairs" in ended.stdout
    assert "head is better than base by 1.6 " in ended.stdout
    for name, verdict, pairs, runs, kept in re.findall(
        r"^\| (\w+) \| (\w+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.M
    ):
        comment = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
        cost = f"{runs} runs and {kept} kept ones (" if int(kept) else f"{runs} runs, "
        assert comment.startswith(f"### {verdict}: ")
        assert f"| pairs | {pairs} of " in comment
        assert f"| cost | {cost}" in comment
