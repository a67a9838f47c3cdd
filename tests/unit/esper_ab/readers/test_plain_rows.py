import math

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers import external_table
from esper_ab.readers.external_table import observations_of
from esper_ab.readers.plain_rows import plain_rows

USED = {"group": "group", "seed": "seed", "outcome": "outcome"}


def table(outcomes, seeds=None, groups=None):
    count = len(outcomes)
    return {
        "group": groups or ["a"] * count,
        "seed": seeds or [str(place) for place in range(count)],
        "outcome": outcomes,
    }


@pytest.mark.parametrize(
    "columns",
    [
        table(["1", "-2.5", "+.5", "1e3", "7.", "-0.0"]),
        table([1.5, -0.0, 2.0]),
        {**table(["1", "2"]), "task": ["x", "y"], "run": ["p", "q"]},
    ],
)
def test_the_fast_reader_equals_reading_row_by_row(columns, monkeypatch):
    used = {name: name for name in columns}
    rows = plain_rows(columns, used, "seed", range(2, 9)[: len(columns["group"])], 60)
    assert rows is not None
    monkeypatch.setattr(external_table, "plain_rows", lambda *_: None)
    assert rows == list(observations_of("f", columns, range(2, 9)[: len(columns["group"])]).rows)
    assert all(math.copysign(1.0, row.value) == 1.0 for row in rows if not row.value)


@pytest.mark.parametrize(
    "columns",
    [
        table(["1", ""]),
        table(["1", "1_0"]),
        table(["1", "1-2"]),
        table(["1", "true"]),
        table(["1", "1e300"]),
        table(["1", "1e400"]),
        table(["1", "٣"]),
        table([1.0, math.nan]),
        table([1, 2]),
        table(["1", "2"], seeds=["0", " 1"]),
        table(["1", "2"], seeds=["0", ""]),
        table(["1", "2"], seeds=[0, 1]),
        table(["1", "2"], groups=["a", "b" * 61]),
        table(["1", "2"], groups=["a", "\x07"]),
        {**table(["1", "2"]), "cluster": ["x", "y"]},
        {**table(["1", "2"]), "task": ["x", "mean over tasks"]},
    ],
)
def test_the_fast_reader_rejects_tables_with_special_cells(columns):
    assert plain_rows(columns, {name: name for name in columns}, "seed", (2, 3), 60) is None


def test_the_refusal_of_a_wrong_cell_names_its_row():
    with pytest.raises(UsageError, match="f, row 3, column outcome: expected a number"):
        observations_of("f", table(["1", "1_0"]), (2, 3))
