"""States of the code of a stream: kept whole, and compared by the files that must stay as they are."""

import shutil

import pytest
from support.repositories.users_repository import users_repository

from esper_ab.code_trees.sealing import seal
from esper_ab.contracts.errors import UsageError
from esper_ab.stream.entries import Setup
from esper_ab.stream.states import changed_words, check_declared, digests, kept_folder, seal_setup


@pytest.fixture
def repository(tmp_path):
    made = users_repository(tmp_path / "my project")
    made.commit({"train.py": "LR = 1\n", "evaluate.py": "def score(): ...\n", "envs/cart pole.py": "", "data.txt": ""})
    (made.top / "agent").mkdir()
    return made


def sealed(repository, state_text=""):
    return seal_setup(repository.top / "agent", state_text or str(repository.top), repository.top, {})


def test_equal_files_have_one_identity_whatever_their_commit(repository):
    first = sealed(repository, "HEAD")
    repository.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    assert sealed(repository, "HEAD").identity == first.identity == sealed(repository).identity
    repository.write({"train.py": "LR = 2\n"})
    changed = sealed(repository)
    assert changed.identity != first.identity
    assert "1 changed file" in changed.code_words


def test_a_state_outlives_the_commits_of_the_user(repository):
    repository.commit({"train.py": "LR = 3\n"})
    setup = sealed(repository, "HEAD")
    shutil.rmtree(repository.top / ".git")
    repository.git("init", "--quiet")
    sealed_code = seal({"candidate": setup.code}, repository.top, kept_folder(repository.top / "agent"), [])
    assert (sealed_code.store.trees / "candidate" / "train.py").read_text() == "LR = 3\n"


def test_changed_removed_and_added_files_are_named(repository):
    paths = ("evaluate.py", "envs")
    before = digests(repository.top / "agent", sealed(repository), paths, repository.top)
    assert list(before) == ["envs/cart pole.py", "evaluate.py"]
    check_declared(paths, before)
    repository.write({"train.py": "LR = 2\n"})
    assert not changed_words(before, digests(repository.top / "agent", sealed(repository), paths, repository.top))
    repository.write({"evaluate.py": "cheat\n", "envs/easy.py": ""})
    (repository.top / "envs" / "cart pole.py").unlink()
    after = digests(repository.top / "agent", sealed(repository), paths, repository.top)
    assert changed_words(before, after) == (
        "it changes envs/cart pole.py, envs/easy.py, evaluate.py, which the stream declares unchanged"
    )


def test_without_states_of_the_code_the_files_themselves_count(repository):
    paths = ("evaluate.py", "envs")
    before = digests(repository.top, Setup(), paths, repository.top)
    (repository.top / "evaluate.py").unlink()
    after = digests(repository.top, Setup(), paths, repository.top)
    assert changed_words(before, after).startswith("it changes evaluate.py,")
    assert digests(repository.top, Setup(), (), repository.top) == {}


def test_many_changed_files_are_counted():
    after = {f"{number}.py": "x" for number in range(5)}
    assert changed_words({}, after).startswith("it changes 0.py, 1.py, 2.py and 2 more, ")


def test_a_declared_file_must_be_there():
    with pytest.raises(UsageError, match=r"unchanged: eval\.py: there is no such file"):
        check_declared(["eval.py"], {"eval.pyc": "x", "envs/eval.py": "x"})
