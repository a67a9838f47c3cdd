"""An experiment has begun once its journal has a whole line."""

from esper_ab.journal.begun import begun


def test_an_experiment_has_begun_once_a_whole_line_is_there(tmp_path, path, journal_bytes):
    first = journal_bytes.index(b"\n")
    for size, has_begun in ((0, False), (1, False), (first, False), (first + 1, True), (first + 9, True)):
        path.write_bytes(journal_bytes[:size])
        assert begun(tmp_path) == has_begun
    assert not begun(path), "a file where a folder is expected"
    path.unlink()
    assert not begun(tmp_path)
