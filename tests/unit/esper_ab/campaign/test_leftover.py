"""Reuse the directory of an experiment that ended before anything was recorded."""

from contextlib import closing

import pytest
from support.journals.short_journal import write

from esper_ab.campaign.leftover import clear, is_leftover
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME, Lock

TORN = b'{"n":0,"prev":'
# Files after a kill during the write of the first line, and after that of a joint experiment before its parts.
KILLED = (
    ".lock",
    ".gitignore",
    "..gitignore.41-7",
    "events.jsonl",
    "experiment.toml",
    "rewards/x/mine.py",
    "console.log",
)
JOINT = (".lock", "plan.json", "digits.toml", ".digits.toml.tmp")


def write_files(folder, names):
    for path in (folder / name for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TORN if path.name == JOURNAL_NAME else b"")
    return folder


@pytest.mark.parametrize(
    ("names", "is_reusable"),
    [
        ((), True),
        (KILLED, True),
        (JOINT, True),
        (("experiment.toml", "trainer/train.py"), False),
        (("notes.md",), False),
        ((".git",), False),
        (("mine.toml",), False),  # the user's
        ((*KILLED, "notes.md"), False),
        ((*KILLED, "policies/a/0.pt"), False),
        ((*KILLED, "joint.json"), False),  # a result
    ],
)
def test_only_a_directory_without_journal_lines_or_foreign_files_is_reused(tmp_path, names, is_reusable):
    assert is_leftover(write_files(tmp_path, names)) == is_reusable
    assert not is_leftover(tmp_path / "none")


def test_a_directory_with_a_journal_line_is_not_reused(tmp_path):
    assert not is_leftover(write(tmp_path).parent)


def test_clearing_a_leftover_directory_keeps_its_console_log(tmp_path):
    leftover = write_files(tmp_path, KILLED)
    with closing(Lock(leftover)):
        assert not is_leftover(leftover)
        with pytest.raises(UsageError, match="is in use by"):
            clear(leftover)
    assert (leftover / JOURNAL_NAME).read_bytes() == TORN
    assert is_leftover(leftover), "its lock names a holder that has left"
    clear(leftover)
    assert sorted(path.name for path in leftover.iterdir()) == [".gitignore", ".lock", "console.log"]
    Journal(leftover).close()
