"""Files that cannot be read as TOML are refused in a line that begins with the file."""

import tomllib

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.toml_errors import toml_errors


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = ", "not TOML"),
        (b"a = '\xff'", "not TOML"),
        (b"a = " + b"1" * 5000, "digits"),
        (b"a = " + b"[" * 20_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(tmp_path, content, words):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=f"^{path}: .*{words}"), toml_errors(path):
        tomllib.loads(path.read_bytes().decode())


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"a\.toml: No such file"), toml_errors(tmp_path / "a.toml"):
        (tmp_path / "a.toml").read_bytes()
