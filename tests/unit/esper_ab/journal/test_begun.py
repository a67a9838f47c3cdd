"""An experiment has begun if its journal has a complete line."""

from esper_ab.journal.begun import begun


def test_an_experiment_has_begun_if_its_journal_has_a_complete_line(tmp_path, path, journal_bytes):
    newline = journal_bytes.index(b"\n")
    for size, has_begun in ((0, False), (1, False), (newline, False), (newline + 1, True), (newline + 9, True)):
        path.write_bytes(journal_bytes[:size])
        assert begun(tmp_path) == has_begun
    assert not begun(path), "a file where a folder is expected"
    path.unlink()
    assert not begun(tmp_path)
