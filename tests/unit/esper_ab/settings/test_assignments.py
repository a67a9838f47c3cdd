"""Constants of the command line and of files; which kinds of task read a setting."""

from pathlib import Path

import pytest

from esper_ab.settings.assignments import Assignment, convert_value


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
    found = constant(written, is_text=True)
    assert (found, type(found)) == (meant, type(meant))
    assert constant(written, is_text=False) == written
    assert constant(meant, is_text=False) == meant
