"""Questions about the user's data: asked on a terminal; elsewhere one line with the flags that answer them."""

import os
import pty
import subprocess
import sys

import pytest
from support.commands.in_process import esper_ab
from support.outcomes.csv_outcomes import csv_text, drawn, rows

WIDE = "seed,old,new\n" + "".join(f"{seed},{seed * 7 % 5 + 1},{seed * 3 % 7 + 20}\n" for seed in range(8))


def test_without_a_terminal_the_line_is_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my wide.csv").write_text(WIDE)
    told = esper_ab("judge", "my wide.csv", "--margin", "2")
    assert told.returncode == 2
    line = "Complete the command: esper-ab judge 'my wide.csv' --margin 2 --groups old,new"
    assert told.stderr.rstrip().endswith(line)
    assert esper_ab("judge", "my wide.csv", "--margin", "2", "--groups", "old,new").returncode == 0


def test_what_names_items_is_no_seed_unless_the_user_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text(csv_text(rows(*drawn(8, 3.0))).replace("seed", "prompt"))
    asked = ("judge", "f.csv", "--margin", "2", "--columns", "seed=prompt")
    told = esper_ab(*asked)
    assert told.returncode == 2
    assert "the column prompt names items of a run, not training runs" in told.stderr
    assert told.stderr.rstrip().endswith("--rows items (or --rows runs)")
    assert "Too few prompts to decide" in " ".join(esper_ab(*asked, "--rows", "items").stdout.split())
    assert esper_ab(*asked, "--rows", "runs").returncode == 0


@pytest.mark.parametrize(
    ("typed", "status", "said"),
    [
        (b"y\n", 0, "old is worse than new"),
        (b"n\n", 2, "nothing was judged"),
        (b"\x04", 130, "interrupted"),
    ],
)
def test_a_terminal_is_asked(tmp_path, typed, status, said):
    (tmp_path / "wide.csv").write_text(WIDE)
    ours, theirs = pty.openpty()
    asked = [sys.executable, "-m", "esper_ab.commands.cli", "judge", "wide.csv", "--margin", "2"]
    command = subprocess.Popen(asked, cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.write(ours, typed)
    shown, _ = command.communicate()
    os.close(ours)
    os.close(theirs)
    assert (command.returncode, said in " ".join(shown.decode().split())) == (status, True)
