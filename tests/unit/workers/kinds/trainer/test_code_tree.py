import os
from pathlib import Path

import pytest

from esper_ab.contracts.code_state import CodeTree
from workers.kinds.trainer.code_tree import files_of


@pytest.fixture
def users(tmp_path):
    """The user's folder in a repository, beside an experiment's directory with a state of it."""
    for top in (tmp_path / "project", tmp_path / "done" / "code" / "trees" / "base"):
        (top / "sub" / "src").mkdir(parents=True)
        (top / "src").mkdir()
        (top / "sub" / "train.py").touch()
    return tmp_path / "project"


def files(users):
    tree = CodeTree(folder="code/trees/base", inside="sub", top=str(users))
    return files_of(tree, users.parent / "done")


def test_modules_are_found_in_the_folder_and_at_the_top_of_the_state(users):
    top = users.parent / "done" / "code" / "trees" / "base"
    expected = [top / "sub" / "src", top / "sub", top / "src", top]
    assert files(users).module_folders == tuple(map(str, expected))


def test_the_search_path_of_the_user_is_that_of_the_state(users):
    given = os.pathsep.join([str(users / "src"), "/elsewhere"])
    variables = files(users).variables({"PYTHONPATH": given, "HOME": "/home", "GIT_DIR": "/other"})
    assert "GIT_DIR" not in variables
    assert variables["PYTHONPATH"].split(os.pathsep) == [*files(users).module_folders, "/elsewhere"]
    assert (variables["PWD"], variables["HOME"]) == (str(files(users).folder), "/home")


@pytest.mark.parametrize("function", ["", ":train"])
def test_a_file_is_the_one_of_the_state(users, function):
    moved = files(users).reference(f"{users / 'sub' / 'train.py'}{function}", str(users / "sub"))
    assert moved == f"{files(users).folder / 'train.py'}{function}"


def test_a_module_and_a_plain_command_stay_as_they_are_written(users):
    for reference in ("package.module:train", "python train.py --seed {seed}"):
        assert files(users).reference(reference, str(users / "sub")) == reference


def test_a_file_that_the_state_lacks_is_refused(users):
    with pytest.raises(ValueError, match=r"it has no file sub/later.py"):
        files(users).reference(f"{users / 'sub' / 'later.py'}:train", str(users / "sub"))


def test_a_file_outside_the_repository_has_no_states(users):
    with pytest.raises(ValueError, match=r"is not in .*project, so it has no states"):
        files(users).reference(f"{users.parent / 'other.py'}:train", str(users / "sub"))


def test_the_python_of_a_virtual_environment_stays_the_users(users):
    environment = users / "sub" / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").touch()
    command = ".venv/bin/python train.py --seed {seed}"
    assert files(users).reference(command, str(users / "sub")) == command  # it may be any program
    (environment / "pyvenv.cfg").touch()
    program = Path(files(users).reference(command, str(users / "sub")).split()[0])
    assert program == environment / "bin" / "python"
