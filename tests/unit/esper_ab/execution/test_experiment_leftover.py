"""Which directory the next experiment of its name may take, and that nothing of anybody else's is removed."""

from contextlib import closing

import pytest
from support.short_journal import write

from esper_ab.contracts.errors import UsageError
from esper_ab.execution.experiment import clear, is_leftover
from esper_ab.journal.file import JOURNAL_NAME, Journal
from esper_ab.journal.lock import Lock

TORN = b'{"n":0,"prev":'


def made(directory, **files):
    for name, data in files.items():
        path = directory / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return directory


@pytest.fixture
def ended(tmp_path):
    """As a kill leaves it while the first line is written."""
    Journal(tmp_path).close()
    return made(tmp_path, events_jsonl=TORN, experiment_toml=b"", rewards__x__mine_py=b"", console_log=b"said")


def test_what_was_ended_before_its_first_line_is_taken_and_its_console_is_kept(ended):
    assert is_leftover(ended)
    clear(ended)
    assert sorted(path.name for path in ended.iterdir()) == [".lock", "console.log"]
    Journal(ended).close()


def test_a_joint_experiment_that_was_ended_before_its_parts_were_written_is_taken(tmp_path):
    Lock(tmp_path).close()
    made(tmp_path, plan_json=b"{}", digits_toml=b"", _digits_toml_tmp=b"")
    assert is_leftover(tmp_path)


def test_an_empty_folder_is_taken_and_one_that_is_not_there_is_none(tmp_path):
    assert is_leftover(tmp_path)
    assert not is_leftover(tmp_path / "none")


@pytest.mark.parametrize("files", [
    {"experiment_toml": b"", "trainer__train_py": b""}, {"notes_md": b""}, {"_git": b""}, {"mine_toml": b""},
])  # fmt: skip
def test_a_folder_of_the_users_is_never_taken(tmp_path, files):
    assert not is_leftover(made(tmp_path, **files))


@pytest.mark.parametrize("files", [{"notes_md": b""}, {"policies__a__0_pt": b""}, {"joint_json": b"{}"}])
def test_what_may_be_worth_something_is_not_taken(ended, files):
    assert not is_leftover(made(ended, **files))


def test_what_has_a_line_is_not_taken(tmp_path):
    assert not is_leftover(write(tmp_path).parent)


def test_what_somebody_has_is_not_taken(ended):
    with closing(Lock(ended)):
        assert not is_leftover(ended)
        with pytest.raises(UsageError, match="is in use by"):
            clear(ended)
    assert (ended / JOURNAL_NAME).read_bytes() == TORN
