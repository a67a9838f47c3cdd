"""The state of a user's repository: a hash of whatever differs from its commit, which nothing of ours keeps."""

from support.repositories.users_repository import users_repository

from esper_ab.code_trees.repository_state import repository_state


def test_a_folder_outside_any_repository_has_no_state(tmp_path):
    assert repository_state(tmp_path) == {}
    assert repository_state(tmp_path / "gone") == {}


def test_a_repository_without_a_commit_has_no_state(tmp_path):
    assert repository_state(users_repository(tmp_path / "new").top) == {}


def test_the_state_of_unchanged_files_is_their_commit(tmp_path):
    repository = users_repository(tmp_path / "mine")
    commit = repository.commit({"a.py": "1", "inside/b.py": "1", ".gitignore": "ignored.py\n"})
    repository.write({"notes.txt": "no code", "ignored.py": "2"})
    assert repository_state(repository.top) == {"commit": commit}
    assert repository_state(repository.top / "inside") == {"commit": commit}


def test_changed_files_new_code_and_files_that_are_gone_change_the_hash(tmp_path):
    repository = users_repository(tmp_path / "mine")
    commit = repository.commit({"a.py": "1", "b.py": "1"})
    seen = set()
    for number, change in (
        (1, {"a.py": "2"}),
        (1, {"a.py": "3"}),
        (2, {"inside/new.py": "1"}),
        (2, {"inside/new.py": "2"}),
    ):
        repository.write(change)
        state = repository_state(repository.top)
        assert (state["commit"], state["changed"]) == (commit, str(number))
        assert repository_state(repository.top / "inside" if number == 2 else repository.top) == state
        seen.add(state["changes"])
    (repository.top / "b.py").unlink()
    seen.add(repository_state(repository.top)["changes"])
    assert len(seen) == 5


def test_git_that_is_missing_tells_nothing(tmp_path, monkeypatch):
    repository = users_repository(tmp_path / "mine")
    repository.commit({"a.py": "1"})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repository_state(repository.top) == {}
