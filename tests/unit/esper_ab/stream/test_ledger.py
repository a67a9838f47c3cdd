"""The ledger: a chain that shows every change, and that a killed writer leaves intact."""

import hashlib
import json
from contextlib import closing

import pytest
from support.streams.made_ledgers import new_ledger, tried

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.lock import Lock
from esper_ab.stream.ledger import LEDGER, Ledger, appending, read_ledger


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
