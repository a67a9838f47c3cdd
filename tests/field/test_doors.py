"""Every way to start that fits a project, tried on a copy of a project as users have them.

A project is a folder of `projects`. Its doors.toml says what is typed there, and what it must print: the words of an
esper-ab command, arguments of Python, or the name of a notebook, of which all cells are executed; `then` has further
commands in the same folder, `status` an exit status other than 0, `lanes` the number of workers, and `slow` marks a
nightly test. WAYS is the matrix of projects and ways in.
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

from esper_ab.contracts.trainer import is_function, placeholders

PROJECTS = Path(__file__).parent / "projects"
# The ways in that are tried on each project; the others do not fit it, or differ in nothing from those of another one.
WAYS = {
    "config file": "command, dry run, experiment file, judge EXPERIMENT, judge FILES, Python, Python file",
    "environment": "command",
    "fails for some seeds": "command, function, resume, status",
    "finished runs": "judge FILES",
    "forks": "command, function, judge FILES",
    "größe und form": "command, judge FILES, Python file",
    "my scripts": "function, Python, Python file",
    "notebook": "notebook",
    "one port": "command",
    "package": "command, function, Python, Python file",
    "prints only": "command",
    "resumes alone": "command",
    "script": "command, judge FILES, Python file, task",
    "tested": "Python",
    "wrapped": "command, dry run",
    "writes events": "command",
}


def projects():
    return sorted(PROJECTS.iterdir())


def doors_of(project):
    return tomllib.loads((project / "doors.toml").read_text(encoding="utf-8"))


def all_doors():
    for project in projects():
        for name, door in doors_of(project).items():
            marks = pytest.mark.slow if door.get("slow") else ()
            yield pytest.param(project, door, id=f"{project.name}-{name}", marks=marks)


def ways_of(step):
    """Return the ways in that a command, or what is typed in its place, tries."""
    dry = {"dry run"} if "--dry-run" in step.get("words", ()) else set()
    return {way_of(step)} | dry


def way_of(step):
    if "notebook" in step:
        return "notebook"
    if "python" in step:
        return "Python"
    command, what, *flags = step["words"]
    if command == "judge":
        return "judge FILES" if "--margin" in flags else "judge EXPERIMENT"
    if command != "launch":
        return command
    if placeholders(what):
        return "command"
    if is_function(what):
        return "function"
    return {".py": "Python file", ".toml": "experiment file"}.get(Path(what).suffix, "task")


def lanes(step):
    """Return the flags of one worker, because each imports torch, or of as many as the door needs."""
    devices = [f"cpu:{number}" for number in range(step.get("lanes", 1))]
    return ("--quiet", "--devices", *devices, "--output-dir", "experiments")


def said_by_command(step, folder):
    flags = lanes(step) if step["words"][0] == "launch" else ()
    ended = esper_ab(*step["words"], *flags, folder=folder)
    said = ended.stdout + ended.stderr
    assert ended.returncode == step.get("status", 0), said
    return said


def said_by_python(arguments, folder):
    ended = python(*arguments, folder=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def said_by_notebook(name, folder):
    notebook = nbformat.read(folder / name, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    return str([output for cell in notebook.cells for output in cell.outputs])


def said_by(step, folder):
    if "words" in step:
        return said_by_command(step, folder)
    if "python" in step:
        return said_by_python(step["python"], folder)
    return said_by_notebook(step["notebook"], folder)


@pytest.mark.parametrize(("project", "door"), list(all_doors()))
def test_a_documented_command_gets_an_answer_for_a_project(tmp_path, monkeypatch, project, door):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copytree(project, tmp_path / project.name)
    folder = tmp_path / project.name / door.get("folder", ".")
    for step in (door, *door.get("then", ())):
        assert step["says"] in " ".join(said_by(step, folder).split())


@pytest.mark.parametrize("project", projects(), ids=lambda project: project.name)
def test_the_matrix_has_the_ways_that_are_tried_on_a_project(project):
    steps = [step for door in doors_of(project).values() for step in (door, *door.get("then", ()))]
    tried = set().union(*map(ways_of, steps))
    assert sorted(tried, key=str.lower) == WAYS[project.name].split(", ")
