"""Every front door that fits a project, tried on projects as people have them, in a copy of the project's folder.

A project is a folder of `projects`. Its doors.toml says which commands are typed there, and what they must print.
"""

import os
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab

PROJECTS = Path(__file__).parent / "projects"
# One worker, because each imports torch: the local launcher, as a user has it, where a process of its own matters.
ONE_LANE = ("--quiet", "--devices", "cpu:0", "--output-dir", "experiments")


def doors():
    for project in sorted(PROJECTS.iterdir()):
        for name, door in tomllib.loads((project / "doors.toml").read_text(encoding="utf-8")).items():
            yield pytest.param(project, door, id=f"{project.name}-{name}")


@pytest.mark.parametrize(("project", "door"), list(doors()))
def test_a_documented_command_gets_an_answer_for_a_project(tmp_path, monkeypatch, project, door):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copytree(project, tmp_path / project.name)
    flags = ONE_LANE if door["words"][0] == "launch" else ()
    ended = esper_ab(*door["words"], *flags, folder=tmp_path / project.name / door.get("folder", "."))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert door["says"] in " ".join(ended.stdout.split())
