"""Questions about the user's data: asked on a terminal, otherwise refused with the flags that answer them."""

import os
import pty
import subprocess
import sys

import pytest
from support.commands.in_process import esper_ab
from support.outcomes.csv_outcomes import csv_text, drawn, rows

WIDE = "seed,old,new\n" + "".join(f"{seed},{seed * 7 % 5 + 1},{seed * 3 % 7 + 20}\n" for seed in range(8))


def test_without_a_terminal_a_question_is_refused_with_the_completed_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my wide.csv").write_text(WIDE)
    result = esper_ab("judge", "my wide.csv", "--margin", "2")
    assert result.returncode == 2
    line = "Complete the command: esper-ab judge 'my wide.csv' --margin 2 --groups old,new"
    assert result.stderr.rstrip().endswith(line)
    assert esper_ab("judge", "my wide.csv", "--margin", "2", "--groups", "old,new").returncode == 0


def test_a_column_of_items_is_used_as_seeds_only_on_request(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text(csv_text(rows(*drawn(8, 3.0))).replace("seed", "prompt"))
    command = ("judge", "f.csv", "--margin", "2", "--columns", "seed=prompt")
    result = esper_ab(*command)
    assert result.returncode == 2
    assert "the column prompt names items of a run, not training runs" in result.stderr
    assert result.stderr.rstrip().endswith("--rows items (or --rows runs)")
    assert "Too few prompts to decide" in " ".join(esper_ab(*command, "--rows", "items").stdout.split())
    assert esper_ab(*command, "--rows", "runs").returncode == 0


@pytest.mark.parametrize(
    ("typed_bytes", "status", "text"),
    [
        (b"y\n", 0, "old is worse than new"),
        (b"n\n", 2, "nothing was judged"),
        (b"\x04", 130, "interrupted"),
    ],
)
def test_a_question_is_asked_if_there_is_a_terminal(tmp_path, typed_bytes, status, text):
    (tmp_path / "wide.csv").write_text(WIDE)
    terminal_side, process_side = pty.openpty()
    arguments = [sys.executable, "-m", "esper_ab.commands.cli", "judge", "wide.csv", "--margin", "2"]
    process = subprocess.Popen(
        arguments, cwd=tmp_path, stdin=process_side, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    os.write(terminal_side, typed_bytes)
    output, _ = process.communicate()
    os.close(terminal_side)
    os.close(process_side)
    assert (process.returncode, text in " ".join(output.decode().split())) == (status, True)
