"""A change begins where it left the default branch."""

import subprocess

import pytest
from support.repositories.users_repository import users_repository

from esper_ab.code_trees.branching import beginning_of
from esper_ab.contracts.errors import UsageError


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = users_repository(tmp_path / "a project")
    monkeypatch.chdir(made.top)
    return made


def test_a_branch_begins_where_it_left_main(repository):
    beginning = repository.commit({"a.py": "1\n"})
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit({"a.py": "2\n"}, tag="v2")
    assert beginning_of(".", repository.top) == beginning
    assert beginning_of("v2", repository.top) == beginning
    repository.git("checkout", "--quiet", "main")
    newest = repository.commit({"b.py": "1\n"})
    assert beginning_of(".", repository.top) == newest
    assert beginning_of("change", repository.top) == beginning


def test_the_branch_that_the_server_calls_its_default_comes_first(repository, tmp_path):
    repository.git("branch", "--move", "trunk")
    beginning = repository.commit({"a.py": "1\n"})
    subprocess.run(["git", "clone", "--quiet", repository.top, tmp_path / "clone"], check=True)
    assert beginning_of(str(tmp_path / "clone"), tmp_path) == beginning
    assert beginning_of(beginning, tmp_path / "clone") == beginning
    with pytest.raises(UsageError, match="none of the branches"):
        beginning_of(".", repository.top)


def test_without_a_common_commit_the_base_must_be_named(repository, tmp_path):
    with pytest.raises(UsageError, match="no commit yet"):
        beginning_of(".", repository.top)
    with pytest.raises(UsageError, match="no commit, branch or tag 'nosuch'"):
        beginning_of("nosuch", repository.top)
    repository.commit({"a.py": "1\n"})
    repository.git("checkout", "--quiet", "--orphan", "change")
    repository.commit({"a.py": "2\n"})
    with pytest.raises(UsageError, match="no common commit"):
        beginning_of(".", repository.top)
    with pytest.raises(UsageError, match="in no git repository"):
        beginning_of(str(tmp_path), repository.top)
