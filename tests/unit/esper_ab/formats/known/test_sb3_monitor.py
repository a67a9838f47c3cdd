"""Training episodes of one run, as written by SB3's Monitor."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import series_of

HEAD = '#{"t_start": 1.5, "env_id": "Pendulum-v1"}\nr,l,t\n'


def write(folder, text):
    file = folder / "0.monitor.csv"
    file.write_text(text)
    return file


def test_the_steps_of_episodes_are_sums_of_their_lengths(tmp_path):
    (table,) = read_file(write(tmp_path, HEAD + "-10.5,200,0.1\n-9,150,0.2\n"))
    series = series_of(table, "r")
    assert (series.steps.tolist(), series.values.tolist(), list(series.row_numbers)) == (
        [200, 350],
        [-10.5, -9],
        [3, 4],
    )
    assert (table.format, table.outcomes, table.better, table.window) == (
        "an SB3 monitor.csv",
        ("r", "l"),
        "higher",
        100,
    )


def test_a_note_mentions_an_incomplete_last_row(tmp_path):
    (table,) = read_file(write(tmp_path, HEAD + "1,2,3\n4,5"))
    assert list(table.columns["r"]) == [1.0]
    assert table.notes == ("The last row of 0.monitor.csv is incomplete and left out.",)


def test_every_column_of_a_monitor_file_can_be_the_outcome(tmp_path):
    (table,) = read_file(write(tmp_path, HEAD.replace("r,l,t", "r,l,t,is_success") + "1,2,3,True\n"))
    assert table.outcomes == ("r", "is_success", "l")
    assert list(series_of(table, "is_success").values) == [1.0]


def test_a_damaged_row_of_a_monitor_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"monitor.csv, row 3: expected r,l,t with numbers r, l and t$"):
        read_file(write(tmp_path, HEAD + "x,2,3\n4,5,6\n"))
