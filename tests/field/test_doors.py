"""Every way to start that fits a project, tried on a copy of a project as users have them.

A project is a folder of `projects`. Its doors.toml says what is typed there, and what it must print: the words of an
esper-ab command, arguments of Python, or the name of a notebook, of which all cells are executed.
"""

import os
import shutil
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from support.commands.in_process import esper_ab
from support.processes.children import python

PROJECTS = Path(__file__).parent / "projects"
# One worker, because each imports torch: the local launcher, as a user has it, where a process of its own matters.
ONE_LANE = ("--quiet", "--devices", "cpu:0", "--output-dir", "experiments")


def doors():
    for project in sorted(PROJECTS.iterdir()):
        for name, door in tomllib.loads((project / "doors.toml").read_text(encoding="utf-8")).items():
            yield pytest.param(project, door, id=f"{project.name}-{name}")


def said_by_command(words, folder):
    flags = ONE_LANE if words[0] == "launch" else ()
    ended = esper_ab(*words, *flags, folder=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def said_by_python(arguments, folder):
    ended = python(*arguments, folder=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def said_by_notebook(name, folder):
    notebook = nbformat.read(folder / name, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    return str([output for cell in notebook.cells for output in cell.outputs])


@pytest.mark.parametrize(("project", "door"), list(doors()))
def test_a_documented_command_gets_an_answer_for_a_project(tmp_path, monkeypatch, project, door):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copytree(project, tmp_path / project.name)
    folder = tmp_path / project.name / door.get("folder", ".")
    if "words" in door:
        said = said_by_command(door["words"], folder)
    elif "python" in door:
        said = said_by_python(door["python"], folder)
    else:
        said = said_by_notebook(door["notebook"], folder)
    assert door["says"] in " ".join(said.split())
