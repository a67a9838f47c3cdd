"""Loading a journal leaves its records in the file."""

import pytest
from support.journals.ready_journals import failed_run, one_replicate, records_of, three_groups, write

from esper_ab.contracts.errors import JournalError
from esper_ab.journal.columns import NAMES
from esper_ab.journal.fold import fold
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME


@pytest.mark.parametrize("events", [one_replicate, three_groups, failed_run])
def test_loading_a_journal_equals_folding_its_events(tmp_path, events):
    loaded_journal = load(write(tmp_path / "run", events()))
    folded_history = fold(events())
    assert (loaded_journal.lines, loaded_journal.torn_bytes) == (len(events()), 0)
    assert loaded_journal.history == folded_history
    for name, run in folded_history.runs.items():
        columns = loaded_journal.history.runs[name].columns
        assert (columns.digests, columns.heads) == (run.columns.digests, run.columns.heads)
        for number in NAMES:
            assert columns.of(number).tobytes() == run.columns.of(number).tobytes()
        assert records_of(loaded_journal.history.runs[name]) == records_of(run)


def test_a_torn_tail_does_not_hide_earlier_damage(tmp_path):
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    data = path.read_bytes()
    *whole, last_line = data.splitlines(keepends=True)
    path.write_bytes(data[:-5])
    loaded_journal = load(experiment_dir)
    assert (loaded_journal.lines, loaded_journal.torn_bytes) == (len(whole), len(last_line) - 5)
    assert loaded_journal.history == fold(one_replicate()[:-1])
    offset = data.rindex(b'"kind":"episode"', 0, data.rindex(b'"kind":"episode"'))
    path.write_bytes(data[:offset] + b'"kind":"Episode"' + data[offset + 16 : -50])
    number = data[:offset].count(b"\n") + 1
    with pytest.raises(JournalError, match=f"line {number}: its CRC does not match its contents"):
        load(experiment_dir)


def test_a_journal_cut_inside_its_first_line_is_damaged(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal_bytes[:100])
    with pytest.raises(JournalError, match=f"^{path}, line 1: it is cut off, so nothing was recorded; launch"):
        load(tmp_path)
