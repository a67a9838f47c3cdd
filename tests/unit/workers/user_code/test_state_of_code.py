import os
import sys
from pathlib import Path

import pytest

from workers.user_code import state_of_code
from workers.user_code.state_of_code import enter, first_folders, leave, moved_path


def unmoved(path):
    return path


@pytest.fixture
def states(tmp_path):
    """Two states of a module."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "module_of_a_state.py").write_text(f"NAME = {name!r}", encoding="utf-8")
    yield tmp_path
    leave()


def test_each_state_has_its_own_modules_and_files(states):
    found = []
    for name in ("one", "two"):
        enter(states / name, [str(states / name)], unmoved)
        found.append((__import__("module_of_a_state").NAME, Path.cwd().name))
    assert found == [("one", "one"), ("two", "two")]


def test_leaving_restores_the_process(states, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/given")
    before = (Path.cwd(), list(sys.path))
    enter(states / "one", [str(states / "one")], unmoved)
    __import__("module_of_a_state")
    assert first_folders() == (str(states / "one"),)
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(states / "one"), "/given"]
    leave()
    assert (Path.cwd(), sys.path) == before
    assert first_folders() == ()
    assert "module_of_a_state" not in sys.modules
    assert os.environ["PYTHONPATH"] == "/given"


def test_without_a_search_path_none_remains(states, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    enter(states / "one", [], unmoved)
    state_of_code.leave()
    assert "PYTHONPATH" not in os.environ


def test_the_users_folders_become_those_of_the_state_and_installed_ones_stay(tmp_path):
    (tmp_path / "state").mkdir()

    def moved(path):
        return path.replace("/project/src", str(tmp_path / "state")).replace("/project", "/nosuch")

    given = ["/project/src", "/project/lib", "/elsewhere"]
    assert moved_path(given, moved) == [str(tmp_path / "state"), "/elsewhere"]
    environment = "/project/.venv/lib/site-packages"
    assert moved_path([environment], moved) == [environment]
