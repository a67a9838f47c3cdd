"""Numbers in spreadsheet notation are converted if a whole column can be converted."""

import pytest

from esper_ab.formats.written_numbers import as_plain_numbers


@pytest.mark.parametrize(
    ("cells", "plain_cells", "note"),
    [
        (["1,5", "2", "nan", ""], ["1.5", "2", "nan", ""], "Column c: 1,5 is read as 1.5."),
        (["1.234,5", "-2,25"], ["1234.5", "-2.25"], "Column c: 1.234,5 is read as 1234.5."),
        (["71.5%", "68 %", ""], ["71.5", "68", ""], "Column c: 71.5% is read as 71.5 (percent)."),
        (["71,5 %", "68 %"], ["71.5", "68"], "Column c: 71,5 % is read as 71.5 (percent)."),
        (["1,234.5", "7"], ["1234.5", "7"], "Column c: 1,234.5 is read as 1234.5."),
    ],
)
def test_numbers_of_a_spreadsheet_are_converted_with_a_note(cells, plain_cells, note):
    assert as_plain_numbers("c", cells, comma_is_decimal=False) == (plain_cells, note)


@pytest.mark.parametrize(
    "cells",
    [
        ["1.5", "2"],
        ["a,b", "c"],
        ["1,5", "x"],
        ["0.7", "70%"],  # one of them is a hundred times too large
        ["1,234", "5,678"],  # thousands or thousandths
        ["1,5", "1,234.5"],
    ],
)
def test_a_column_without_numbers_is_left_unchanged(cells):
    assert as_plain_numbers("c", cells, comma_is_decimal=False) == (cells, "")


def test_a_comma_is_a_decimal_sign_in_files_separated_by_semicolons():
    assert as_plain_numbers("c", ["1,234", "5,678"], comma_is_decimal=True)[0] == ["1.234", "5.678"]
