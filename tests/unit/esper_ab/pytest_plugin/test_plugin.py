"""The plugin of pytest costs nothing where no assertion is used, and is declared as an entry point."""

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

from support.processes.children import python

from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.pytest_plugin import plugin

ROOT = Path(__file__).resolve().parents[4]


def test_the_plugin_is_an_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"esper_ab": plugin.__name__}


def test_the_plugin_imports_no_library_and_nothing_of_the_package_but_the_session(tmp_path):
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import esper_ab.pytest_plugin.plugin\n"
        "print(*sorted(name for name in set(sys.modules) - before))"
    )
    names = python("-c", code, folder=tmp_path).stdout.split()
    assert [name for name in names if name.startswith("esper_ab")] == [
        "esper_ab",
        "esper_ab.pytest_plugin",
        "esper_ab.pytest_plugin.plugin",
        "esper_ab.pytest_plugin.session",
    ]
    assert not {"numpy", "msgspec", "click", "torch"} & set(names)


def test_copies_of_tests_in_the_directory_of_an_experiment_are_not_collected(tmp_path):
    """If they were, pytest would refuse them, because two test files would have the same name."""
    for folder in ("tests", "experiments/x/trainer/ab", "all runs/other"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "test_training.py").write_text("def test_it(): pass\n")
    (tmp_path / "experiments/x" / JOURNAL_NAME).touch()
    loaded = [] if entry_points(group="pytest11", name="esper_ab") else ["-p", plugin.__name__]
    words = [*loaded, "-p", "no:cacheprovider", "--collect-only", "-q", "--esper-ab-directory", "all runs"]
    collected = python("-m", "pytest", *words, folder=tmp_path)
    assert collected.stdout.splitlines()[0] == "tests/test_training.py::test_it"
    assert collected.returncode == 0
