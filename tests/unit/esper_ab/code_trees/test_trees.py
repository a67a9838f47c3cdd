import shutil

import pytest
from support.repositories.users_repository import users_repository

from esper_ab.code_trees.sealing import seal
from esper_ab.code_trees.trees import make_trees, remove_trees, trees_present
from esper_ab.contracts.errors import UsageError


@pytest.fixture
def repository(tmp_path):
    made = users_repository(tmp_path / "project")
    made.commit({"train.py": "one"}, tag="v1")
    return made


@pytest.fixture
def kept(tmp_path, repository):
    """An experiment's directory that keeps a commit and a changed working tree, and the states."""
    repository.write({"train.py": "changed"})
    sealed = seal({"base": "v1", "lr=0.1": str(repository.top)}, repository.top, None, [])
    (tmp_path / "done").mkdir()
    sealed.keep(tmp_path / "done")
    return tmp_path / "done", sealed.states


def texts(directory):
    trees = directory / "code" / "trees"
    return {path.parent.name: path.read_text(encoding="utf-8") for path in trees.glob("*/train.py")}


def test_trees_are_present_inside_the_context_only(kept):
    directory, states = kept
    with trees_present(directory, states):
        assert texts(directory) == {"base": "one", "lr_0.1": "changed"}
    assert not (directory / "code" / "trees").exists()


def test_trees_that_a_killed_process_left_are_made_anew(kept):
    directory, states = kept
    make_trees(directory, states)
    (directory / "code" / "trees" / "base" / "train.py").write_text("edited", encoding="utf-8")
    with trees_present(directory, states):
        assert texts(directory)["base"] == "one"


def test_git_inside_a_tree_knows_the_commit_of_the_state(kept, repository):
    directory, states = kept
    with trees_present(directory, states):
        inside = ("-C", str(directory / "code" / "trees" / "base"))
        assert repository.git(*inside, "rev-parse", "HEAD").strip() == states[0].commit
        assert repository.git(*inside, "status", "--porcelain") == ""
    assert len(repository.git("worktree", "list").splitlines()) == 1


def test_states_that_are_commits_of_the_user_leave_nothing_behind(tmp_path, repository):
    sealed = seal({"base": "v1", "head": "main"}, repository.top, None, [])
    sealed.keep(tmp_path)
    with trees_present(tmp_path, sealed.states):
        assert texts(tmp_path) == {"base": "one", "head": "one"}
    assert not (tmp_path / "code").exists()
    with trees_present(tmp_path, sealed.states):
        assert texts(tmp_path) == {"base": "one", "head": "one"}


def test_an_experiment_that_was_moved_finds_its_states_again(tmp_path, kept):
    directory, states = kept
    moved = tmp_path / "moved"
    shutil.move(directory, moved)
    with trees_present(moved, states):
        assert texts(moved) == {"base": "one", "lr_0.1": "changed"}


def test_a_commit_that_is_gone_is_refused_with_the_remedy(tmp_path, kept, repository):
    directory, states = kept
    shutil.move(repository.top, tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=r"is no longer in .*project; put the repository back"):
        make_trees(directory, states)


def test_removing_trees_of_an_experiment_without_states_does_nothing(tmp_path):
    remove_trees(tmp_path)
    assert list(tmp_path.iterdir()) == []
