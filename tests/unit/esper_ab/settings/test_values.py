"""A parameter of a user's function, from the command line and from a file."""

from pathlib import Path

import pytest

from esper_ab.settings.assignments import Assignment
from esper_ab.settings.values import convert_value


def constant(value, *, is_text):
    return convert_value(Assignment("reward.params.w", value, "there", Path("/"), is_text=is_text))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("'3'", "3"),
        ('"a b"', "a b"),
        ("fast", "fast"),
        ("'unclosed", "'unclosed"),
    ],
)
def test_a_constant_of_the_command_line_is_read_as_in_a_file_and_one_of_a_file_stays_what_it_is(written, meant) -> None:
    value = constant(written, is_text=True)
    assert (value, type(value)) == (meant, type(meant))
    assert constant(written, is_text=False) == written
    assert constant(meant, is_text=False) == meant
