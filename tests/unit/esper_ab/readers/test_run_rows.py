import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.cells import cell_text, outcome_of
from esper_ab.readers.cell_columns import CellColumns
from esper_ab.readers.run_rows import run_rows
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.scale import MEAN

USED = {"task": "cell", "cluster": "host", "order": "order", "group": "arm", "seed": "seed", "outcome": "score"}
GOOD = {"task": "x", "cluster": "m", "order": "1", "group": "a", "seed": "0", "outcome": "2.5"}
NAMES = st.sampled_from(["a", " b ", "07", "7", 7, 7.0, True, None, "", "n/a", "x" * 61, "a\nb", MEAN])
OUTCOMES = st.sampled_from(["1", "-2.5", "+.5", "1e3", "7.", "-0.0", "", "nan", " 4 ", "1_0", "true", 3, -0.0, "1e41"])
CELLS = {
    "task": NAMES,
    "cluster": NAMES,
    "order": st.sampled_from(["3", "-1", "", "none", "1.5", 12]),
    "group": NAMES,
    "seed": NAMES,
    "outcome": OUTCOMES,
}
ROWS = st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=6)


def read(rows, used=USED):
    columns = {theirs: [row[ours] for row in rows] for ours, theirs in used.items()}
    return run_rows("f.csv", CellColumns(columns), used, "seed", range(2, 2 + len(rows)))


def row_by_row(rows):
    """Read one row after the other, and the cells of a row in the order of USED."""
    read_rows = []
    for number, row in enumerate(rows, 2):
        cells = {}
        for ours, theirs in USED.items():
            where = f"f.csv, row {number}, column {theirs}"
            cells[ours] = (
                outcome_of(row[ours], where) if ours == "outcome" else _name(ours, cell_text(row[ours]), where)
            )
        order = cells.pop("order")
        value = cells.pop("outcome")
        replicate = cells.pop("seed")
        read_rows.append(
            Observation(
                **cells, replicate=replicate, value=value, row=number, order=None if order == "" else int(order)
            )
        )
    return read_rows


def _name(ours, text, where):
    optional = ours in ("cluster", "order")
    if not text and not optional:
        raise UsageError(f"{where}: empty, but every run needs a value here")
    if len(text) > 60 or not text.isprintable():
        shown = visible_line(text, 60)
        raise UsageError(f"{where}: {shown!r} is not a printable name of at most 60 characters")
    if ours == "task" and text == MEAN:
        raise UsageError(f"{where}: the name {MEAN!r} is reserved")
    if optional and text.lower() in ("n/a", "none"):
        return ""
    if ours == "order" and text and not text.removeprefix("-").isdecimal():
        raise UsageError(f"{where}: {text!r} is not a whole number")
    return text


@given(ROWS)
def test_columns_are_read_as_row_by_row_and_refuse_the_first_invalid_cell(rows):
    assert _answer(lambda: list(read(rows))) == _answer(lambda: row_by_row(rows))


def _answer(read_all):
    """Return all rows, or the message of a refusal."""
    try:
        return read_all()
    except UsageError as refusal:
        return str(refusal)


@pytest.mark.parametrize("outcome", ["-0.0", -0.0])
def test_a_negative_zero_is_zero(outcome):
    (run,) = read([GOOD | {"outcome": outcome}])
    assert math.copysign(1.0, run.value) == 1.0


def test_columns_that_the_source_does_not_have_are_empty():
    used = {ours: USED[ours] for ours in ("group", "seed", "outcome")}
    (run,) = read([GOOD], used)
    assert (run.task, run.cluster, run.run, run.order) == ("", "", "", None)


def test_an_outcome_in_digits_of_another_script_is_refused():
    with pytest.raises(UsageError, match="row 3, column score: expected a number"):
        read([GOOD, GOOD | {"outcome": "٣"}])
