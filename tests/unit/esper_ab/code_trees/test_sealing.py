import shutil
from pathlib import Path

import pytest
from support.repositories.users_repository import users_repository

from esper_ab.code_trees.sealing import folder_hash, seal
from esper_ab.contracts.errors import UsageError


@pytest.fixture
def repository(tmp_path):
    made = users_repository(tmp_path / "my project")
    made.commit({"train.py": "one", "uv.lock": "1"}, tag="v1")
    made.commit({"train.py": "two"}, tag="v2")
    return made


def text_of(sealed, group, name="train.py"):
    return (sealed.store.trees / group / name).read_text(encoding="utf-8")


def test_each_group_gets_the_files_of_its_commit(repository):
    sealed = seal({"base": "v1", "head": "main"}, repository.top, None, [])
    assert (text_of(sealed, "base"), text_of(sealed, "head")) == ("one", "two")
    assert [state.words.partition(" ")[0] for state in sealed.states] == ["v1", "main"]
    assert [state.commit for state in sealed.states] == [state.sealed for state in sealed.states]


def test_the_working_tree_is_sealed_with_changed_new_and_deleted_files(repository):
    repository.commit({"gone.py": "", ".gitignore": "data/\n"})
    (repository.top / "gone.py").unlink()
    repository.write({"train.py": "three", "new.py": "new", "data/large.npz": "ignored"})
    sealed = seal({"head": str(repository.top)}, repository.top, None, [])
    repository.write({"train.py": "edited while runs train"})
    (state,) = sealed.states
    assert text_of(sealed, "head") == "three"
    names = {path.name for path in (sealed.store.trees / "head").iterdir()}
    assert names == {".git", ".gitignore", "train.py", "uv.lock", "new.py"}
    assert state.changed == 3
    assert state.words.endswith("with 3 changed files")
    assert state.commit == repository.git("rev-parse", "HEAD").strip() != state.sealed


def test_a_change_in_the_moment_of_the_last_commit_is_seen(repository):
    repository.commit({"train.py": "aaa"})
    repository.write({"train.py": "bbb"})
    assert text_of(seal({"head": str(repository.top)}, repository.top, None, []), "head") == "bbb"


def test_a_clean_working_tree_is_its_commit(repository):
    (state,) = seal({"head": str(repository.top)}, repository.top, None, []).states
    assert (state.sealed, state.changed, state.changes_sha256) == (state.commit, 0, "")
    assert state.words.endswith("without changes")


def test_sealing_writes_nothing_into_the_repository_of_the_user(repository):
    def files():
        return {path: path.read_bytes() for path in repository.top.rglob("*") if path.is_file()}

    repository.write({"train.py": "three", "new.py": "new"})
    before = files()
    seal({"base": "v1", "head": str(repository.top)}, repository.top, None, [])
    assert files() == before
    assert len(repository.git("worktree", "list").splitlines()) == 1


def test_equal_files_are_sealed_as_equal_commits(repository):
    repository.write({"train.py": "three"})
    states = [seal({"head": str(repository.top)}, repository.top, None, []).states[0] for _ in range(2)]
    assert states[0] == states[1]


def test_results_in_the_repository_are_left_out(repository):
    repository.write({"experiments/one/events.jsonl": "x", "train.py": "three"})
    (state,) = seal({"head": str(repository.top)}, repository.top, None, [repository.top / "experiments"]).states
    assert state.changed == 1


def test_the_folder_in_which_runs_work_is_the_one_in_which_the_user_is(repository):
    repository.commit({"sub/train.py": "one"})
    states = seal({"base": "main", "head": str(repository.top / "sub")}, repository.top / "sub", None, []).states
    assert [state.inside for state in states] == ["sub", "sub"]


def test_digests_of_lock_files_tell_which_differ(repository):
    repository.commit({"uv.lock": "2", "sub/requirements-dev.txt": "a", "sub/train.py": "x"})
    repository.git("tag", "v3")
    one, two = seal({"a": "v2", "b": "v3"}, repository.top, None, []).states
    assert one.locks.keys() == two.locks.keys() == {"uv.lock"}
    assert one.locks["uv.lock"] != two.locks["uv.lock"]
    (inside,) = seal({"b": "v3"}, repository.top / "sub", None, []).states
    assert inside.locks.keys() == {"uv.lock", "sub/requirements-dev.txt"}


def test_a_folder_outside_any_repository_is_sealed_without_a_commit(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "train.py").write_text("plain", encoding="utf-8")
    sealed = seal({"head": str(folder)}, tmp_path, None, [])
    assert text_of(sealed, "head") == "plain"
    assert sealed.states[0].commit == ""
    assert sealed.states[0].kept


def test_submodules_are_checked_out_at_the_commits_of_each_state(tmp_path, repository):
    library = users_repository(tmp_path / "library")
    library.commit({"lib.py": "old"})
    repository.git("submodule", "--quiet", "add", str(library.top), "lib")
    repository.commit({}, tag="with-old")
    library.commit({"lib.py": "new"})
    repository.git("-C", "lib", "pull", "--quiet", "origin", "main")
    repository.commit({}, tag="with-new")
    sealed = seal({"old": "with-old", "new": "with-new"}, repository.top, None, [])
    assert [text_of(sealed, group, "lib/lib.py") for group in ("old", "new")] == ["old", "new"]


def test_changes_inside_a_submodule_are_refused(tmp_path, repository):
    library = users_repository(tmp_path / "library")
    library.commit({"lib.py": "old"})
    repository.git("submodule", "--quiet", "add", str(library.top), "lib")
    repository.commit({})
    repository.write({"lib/lib.py": "changed"})
    with pytest.raises(UsageError, match="the submodule lib has changes that are not committed"):
        seal({"head": str(repository.top)}, repository.top, None, [])


def test_a_sealed_state_is_found_again_where_an_experiment_keeps_it(tmp_path, repository):
    repository.write({"train.py": "three"})
    sealed = seal({"head": str(repository.top)}, repository.top, None, [])
    (tmp_path / "done").mkdir()
    sealed.keep(tmp_path / "done")
    (state,) = sealed.states
    repository.git("checkout", "--quiet", "train.py")
    again = seal({"head": state.sealed}, repository.top, tmp_path / "done" / "code", [])
    assert text_of(again, "head") == "three"
    assert (again.states[0].commit, again.states[0].changed) == (state.commit, 1)


def test_uncommitted_changes_that_the_commit_checked_out_leaves_out_are_counted(repository):
    repository.write({"train.py": "three"})
    states = seal({"base": "v1", "head": "HEAD"}, repository.top, None, []).states
    assert [state.left_out for state in states] == [0, 1]


def test_no_change_is_left_out_of_a_commit_that_is_named_by_its_whole_hash(repository):
    """An experiment file names commits so; who repeats it wants the same code again."""
    repository.write({"train.py": "three"})
    (named,) = seal({"head": "HEAD"}, repository.top, None, []).states
    (exact,) = seal({"head": named.commit}, repository.top, None, []).states
    assert (exact.commit, exact.left_out) == (named.commit, 0)


def test_the_temporary_folder_is_removed_with_the_states(repository):
    sealed = seal({"head": "main"}, repository.top, None, [])
    folder = sealed.store.folder
    assert folder.is_dir()
    del sealed
    assert not folder.exists()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("nosuch", "has no commit, branch or tag 'nosuch'; `git branch"),
        ("mian", "did you mean main?"),
        ("sub", "for the folder, write ./sub"),
        ("/nosuch", "there is no such folder"),
    ],
)
def test_a_state_that_does_not_exist_is_refused(repository, asked, message):
    repository.write({"sub/x.py": ""})
    with pytest.raises(UsageError) as refused:
        seal({"head": asked}, repository.top, None, [])
    assert message in str(refused.value)


def test_a_branch_that_only_the_server_has_is_named(tmp_path, repository):
    repository.git("branch", "feature")
    clone = users_repository(tmp_path / "clone")
    clone.git("remote", "add", "origin", str(repository.top))
    clone.git("fetch", "--quiet", "origin")
    with pytest.raises(UsageError, match="did you mean origin/feature"):
        seal({"head": "feature"}, clone.top, None, [])


def test_a_commit_outside_any_repository_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is in no git repository"):
        seal({"head": "main"}, tmp_path, None, [])


def test_a_state_without_the_folder_of_the_user_is_refused(repository):
    repository.write({"later/train.py": ""})
    with pytest.raises(UsageError, match="it has no folder later, in which you are"):
        seal({"base": "v1"}, repository.top / "later", None, [])


def test_without_git_the_message_says_so(repository, monkeypatch):
    monkeypatch.setenv("PATH", str(repository.top))
    with pytest.raises(UsageError, match="--code needs git"):
        seal({"head": "main"}, repository.top, None, [])


def test_variables_of_a_git_hook_lead_to_no_other_repository(tmp_path, repository, monkeypatch):
    other = users_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.top / ".git"))
    (state,) = seal({"head": "main"}, repository.top, None, []).states
    assert Path(state.top) == repository.top


def test_the_hash_of_a_folder_depends_on_the_content_of_its_files(repository, tmp_path):
    committed = folder_hash(repository.top, [])
    repository.commit({"new.py": "one"})
    repository.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    (repository.top / "new.py").unlink()
    assert folder_hash(repository.top, []) == committed
    repository.write({"train.py": "three"})
    assert folder_hash(repository.top, []) != committed
    shutil.copytree(repository.top, tmp_path / "plain", ignore=shutil.ignore_patterns(".git"))
    assert folder_hash(tmp_path / "plain", []) == folder_hash(repository.top, [])
