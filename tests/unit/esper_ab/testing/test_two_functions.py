"""Two functions as one, in a file that another process can load."""

import os
from pathlib import Path

import pytest
from support.processes.children import python

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.differences import WHICH_FUNCTION
from esper_ab.testing.two_functions import as_one


def plain(seed, lr=0.5):
    return seed * lr


def test_the_written_function_calls_the_one_that_is_chosen(tmp_path):
    factor = 10

    def inner(seed):
        return 7 * seed

    reference = as_one("assert_not_worse", {"plain": plain, "new": inner}, tmp_path / "a folder")
    file, _, name = reference.rpartition(":")
    assert name == "plain_or_inner"
    code = (
        f"import runpy; train = runpy.run_path({file!r})[{name!r}]\n"
        f"filled = dict(seed=4, out='o', device='cpu')\n"
        f"print(train(**filled, {WHICH_FUNCTION}='plain', lr=0.25), train(**filled, {WHICH_FUNCTION}='new'))"
    )
    assert python("-c", code, folder=tmp_path).stdout == "1.0 28\n"
    assert factor


def test_the_same_functions_are_written_into_the_same_file(tmp_path):
    first, second = (as_one("assert_not_worse", {"a": plain, "b": plain}, tmp_path) for _ in range(2))
    assert first == second
    assert len(list((tmp_path / "functions").glob("*/"))) == 1
    assert (tmp_path / "functions/.gitignore").read_text().endswith("\n*\n")


@pytest.mark.parametrize("function", [lambda seed: seed, os.getpid, Path("x").exists])
def test_a_function_that_other_processes_could_not_call_is_refused(function, tmp_path):
    with pytest.raises(UsageError, match=r"^assert_not_worse: "):
        as_one("assert_not_worse", {"a": plain, "b": function}, tmp_path)


def test_a_function_of_the_script_that_runs_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(plain, "__module__", "__main__")
    with pytest.raises(UsageError, match=r"put both into a module$"):
        as_one("assert_not_worse", {"a": plain, "b": plain}, tmp_path)
