"""The script for sbatch: where it says what it prints, and when it resumes."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from click.testing import CliRunner

from esper_ab.commands.slurm_script import command

ALLOTTED = ("--nodes", "1", "--cores", "1", "--name", "lab")
ONE = ("--groups", "shaped,sparse")
GRID = (*ONE, "--grid", "ppo.gamma=0.9,0.99")
TASKS = (*ONE, "--task", "synthetic,digits")


def printed(*flags):
    done = CliRunner().invoke(command, [*ALLOTTED, *flags], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def begins_with(script, folder):
    """The command that the script becomes: launch or resume, shown in the place of being carried out."""
    said = script.replace("exec ", "exec echo ")
    done = subprocess.run(["bash", "-c", said], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return next(word for word in done.stdout.split() if word in ("launch", "resume"))


@pytest.mark.parametrize("flags", [ONE, GRID, TASKS])
@pytest.mark.parametrize(("there", "does"), [
    ({}, "launch"),
    ({"events.jsonl": ""}, "launch"),
    ({"events.jsonl": '{"n":0,'}, "launch"),
    ({"events.jsonl": '{"n":0}\n'}, "resume"),
    ({"joint.json": "{}\n"}, "resume"),
])  # fmt: skip
def test_it_resumes_what_has_been_recorded(tmp_path, monkeypatch, flags, there, does):
    monkeypatch.chdir(tmp_path)
    script = printed(*flags)
    for name, text in there.items():
        path = tmp_path / "experiments" / "lab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert begins_with(script, tmp_path) == does


def test_its_output_goes_into_a_folder_that_is_there(tmp_path, monkeypatch):
    folder = tmp_path / "100 % of it"
    folder.mkdir()
    monkeypatch.chdir(folder)
    output = next(line for line in printed(*ONE).splitlines() if "--output=" in line)
    path = shlex.split(output.partition("--output=")[2])[0].replace("%%", "%")
    assert path == f"{folder}/lab.slurm.txt"
    assert not list(folder.iterdir()), "printing a script makes nothing"
