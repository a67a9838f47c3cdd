"""The ledger: a chain that shows every change, and that a killed writer leaves intact."""

import hashlib
import json
from contextlib import closing

import pytest
from support.streams.made_ledgers import QUESTION, new_ledger, tried

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.lock import JOURNAL_NAME, Lock
from esper_ab.stream.ledger import LEDGER, Ledger, appending, read_ledger
from esper_ab.stream.opening import open_stream


@pytest.fixture
def folder(tmp_path):
    tried(new_ledger(tmp_path / "my stream"), [0.0, 3.0])
    return tmp_path / "my stream"


def test_every_line_has_the_digest_of_the_line_before(folder):
    """As anyone can check without this package."""
    previous = "0" * 64
    lines = (folder / LEDGER).read_bytes().splitlines()
    for number, line in enumerate(lines):
        tree = json.loads(line)
        assert (tree["n"], tree["previous"]) == (number, previous)
        previous = hashlib.sha256(line).hexdigest()
    assert read_ledger(folder).head == previous
    assert [json.loads(line)["entry"]["type"] for line in lines][:3] == ["opened", "measured", "begun"]


def test_entries_are_read_as_they_were_appended(folder):
    ledger = read_ledger(folder)
    ledger.append(ledger.entries[1])
    assert Ledger(folder).entries == ledger.entries
    assert Ledger(folder).head == ledger.head


def test_a_line_without_its_end_was_never_acknowledged(folder):
    entries = read_ledger(folder).entries
    with (folder / LEDGER).open("ab") as file:
        file.write(b'{"n":6,"prev')
    with appending(folder) as ledger:
        assert ledger.entries == entries
        ledger.append(entries[1])
    assert read_ledger(folder).entries == [*entries, entries[1]]


@pytest.mark.parametrize("change", ["changed", "removed", "added", "not JSON", "out of place"])
def test_a_changed_chain_is_refused_with_its_line(folder, change):
    lines = (folder / LEDGER).read_bytes().splitlines(keepends=True)
    if change == "changed":
        lines[2] = lines[2].replace(b'"rate 0"', b'"rate 9"')
    elif change == "removed":
        del lines[2]
    elif change == "added":
        lines.insert(2, lines[2])
    elif change == "not JSON":
        lines[2] = b"{]\n"
    else:
        del lines[0]
    (folder / LEDGER).write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=r"ledger\.jsonl: line [134] ") as refusal:
        read_ledger(folder)
    assert "\n" not in str(refusal.value)


def test_only_one_process_tries_a_candidate(folder):
    with (
        closing(Lock(folder)),
        pytest.raises(UsageError, match="is trying a candidate; wait until it is decided"),
        appending(folder),
    ):
        pass


def test_a_folder_without_a_stream_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"there is no stream here; `esper-ab stream new"):
        read_ledger(tmp_path)


@pytest.mark.parametrize("name", ["incumbent-0", "candidate-2", "mine"])
def test_experiments_without_a_ledger_are_no_stream_and_no_place_for_one(folder, name):
    (folder / LEDGER).unlink()
    (folder / "experiments" / name).mkdir(parents=True)
    (folder / "experiments" / name / JOURNAL_NAME).write_text("{}\n")
    expected = rf"experiments/{name} is there, but no {LEDGER}.*put back a copy.*or make the stream in a new folder"
    for refused in (lambda: read_ledger(folder), lambda: open_stream(folder, QUESTION)):
        with pytest.raises(UsageError, match=expected):
            refused()


def test_what_an_interrupted_command_leaves_before_its_ledger_is_no_experiment(folder):
    (folder / LEDGER).unlink()
    (folder / "experiments" / "incumbent-0").mkdir(parents=True)
    with pytest.raises(UsageError, match="there is no stream here"):
        read_ledger(folder)
