"""Parameters of a user's function, from the command line and from a file."""

from pathlib import Path

import pytest

from esper_ab.settings.assignments import Assignment
from esper_ab.settings.values import convert_value


def convert_constant(value, *, is_text):
    return convert_value(Assignment("reward.params.w", value, "origin", Path("/"), is_text=is_text))


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
def test_a_constant_on_the_command_line_is_typed_by_its_spelling(written, meant) -> None:
    value = convert_constant(written, is_text=True)
    assert (value, type(value)) == (meant, type(meant))
    assert convert_constant(written, is_text=False) == written
    assert convert_constant(meant, is_text=False) == meant
