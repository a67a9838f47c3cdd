"""Where the assertions keep their experiments, and how many runs share the cores with those of other processes."""

from pathlib import Path

import pytest

from esper_ab.contracts.process_start import usable_cores
from esper_ab.pytest_plugin import session
from esper_ab.testing.folders import folder_of_all, most_parallel, output_folder

TEST = "tests/test_a.py::TestB::test_c[x/y-1] (call)"  # pytest sets the variable anew before each phase


@pytest.fixture
def begun():
    """A session of pytest within this one."""
    inner = session.PytestSession(directory=None)
    session.begin(inner)
    yield inner
    session.end(inner)


def test_the_folder_is_named_after_the_test(begun, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_CURRENT_TEST", TEST)
    begun.directory = tmp_path / "a folder"
    assert output_folder() == tmp_path / "a folder" / "TestB-test-c-x-y-1"


def test_without_a_directory_the_folder_is_a_temporary_one(begun, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_CURRENT_TEST", TEST)
    begun.make_temporary = lambda name: tmp_path / name
    assert output_folder() == tmp_path / "TestB-test-c-x-y-1"


def test_outside_pytest_the_folder_is_that_of_experiments(monkeypatch):
    monkeypatch.setattr(session, "_sessions", [])
    assert output_folder() == Path("experiments")


@pytest.mark.parametrize(("processes", "expected"), [("1", None), (str(10 * usable_cores()), 1)])
def test_processes_of_xdist_share_the_cores(processes, expected, monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", processes)
    assert most_parallel() == expected


@pytest.mark.parametrize(("process", "inner"), [("", "test-a0"), ("gw1", "popen-gw1/test-a0")])
def test_the_folder_of_all_has_those_of_other_tests_and_processes(process, inner, begun, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER", process)
    begun.make_temporary = lambda name: tmp_path / inner
    assert folder_of_all(tmp_path / inner) == tmp_path
    begun.directory = tmp_path / "all"
    assert folder_of_all(tmp_path / "all" / "test-a") == tmp_path / "all"


def test_outside_pytest_the_folder_of_all_is_the_only_one(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_sessions", [])
    assert folder_of_all(tmp_path) == tmp_path
