"""Reuse the directory of an experiment that ended before anything was recorded."""

from contextlib import closing

import pytest
from support.journals.short_journal import write

from esper_ab.campaign.leftover import clear, is_leftover
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME, Lock

# Which directory the next experiment of its name may take, and that nothing of anybody else's is removed.


TORN = b'{"n":0,"prev":'
# As a kill leaves an experiment while the first line is written, and a joint one before its parts are.
ENDED = (".lock", "events.jsonl", "experiment.toml", "rewards/x/mine.py", "console.log")
JOINT = (".lock", "plan.json", "digits.toml", ".digits.toml.tmp")


def holding(folder, names):
    for path in (folder / name for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TORN if path.name == JOURNAL_NAME else b"")
    return folder


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ((), True),
        (ENDED, True),
        (JOINT, True),
        (("experiment.toml", "trainer/train.py"), False),
        (("notes.md",), False),
        ((".git",), False),
        (("mine.toml",), False),  # of the user's
        ((*ENDED, "notes.md"), False),
        ((*ENDED, "policies/a/0.pt"), False),
        ((*ENDED, "joint.json"), False),  # of worth
    ],
)
def test_only_what_was_ended_before_its_first_line_is_taken(tmp_path, names, taken):
    assert is_leftover(holding(tmp_path, names)) == taken
    assert not is_leftover(tmp_path / "none")


def test_what_has_a_line_is_not_taken(tmp_path):
    assert not is_leftover(write(tmp_path).parent)


def test_the_console_of_what_is_taken_is_kept_and_what_somebody_has_is_not_taken(tmp_path):
    ended = holding(tmp_path, ENDED)
    with closing(Lock(ended)):
        assert not is_leftover(ended)
        with pytest.raises(UsageError, match="is in use by"):
            clear(ended)
    assert (ended / JOURNAL_NAME).read_bytes() == TORN
    assert is_leftover(ended), "its lock names a holder that has left"
    clear(ended)
    assert sorted(path.name for path in ended.iterdir()) == [".lock", "console.log"]
    Journal(ended).close()
