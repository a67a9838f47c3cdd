"""Option files are found by path or folder; errors name a remedy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.option_file import load_option_file


class Measured(msgspec.Struct, frozen=True):
    """The contents of a file."""

    schema: int
    value: float


DECODER = msgspec.json.Decoder(Measured)


def load(path: Path) -> Measured:
    return load_option_file(path, DECODER, option_name="measurement", schema=3, writing_command="measure")


def test_an_option_file_is_found_by_its_path_or_folder(tmp_path: Path) -> None:
    file = tmp_path / "measurement.json"
    file.write_bytes(msgspec.json.encode(Measured(3, 0.5)))
    assert load(file) == load(tmp_path) == Measured(3, 0.5)
    file.write_text(f"\ufeff{file.read_text()}")
    assert load(file) == Measured(3, 0.5)


def test_the_refusal_of_a_missing_option_file_names_the_command_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--measurement \S+/measurement\.json: No such file.*`esper-ab measure`"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "no json", '{"schema": 3, "value": "high"}'])
def test_an_option_file_with_other_contents_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "some.json").write_text(content)
    with pytest.raises(UsageError, match=r"^--measurement \S+/some\.json: not a measurement of this version: "):
        load(tmp_path / "some.json")


@pytest.mark.parametrize("schema", [2, 4])
def test_the_refusal_of_another_schema_names_both_schemas(tmp_path: Path, schema: int) -> None:
    (tmp_path / "some.json").write_bytes(msgspec.json.encode(Measured(schema, 0.5)))
    with pytest.raises(UsageError, match=rf"schema {schema}, but this version reads 3; create it .* `esper-ab m"):
        load(tmp_path / "some.json")
