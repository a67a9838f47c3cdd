"""The contract of every file in esper_ab/formats/known, on files that other libraries wrote (tests/field/files).

A damaged, endless or hostile file gives tables or one line, never a traceback.
"""

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format, format_of
from esper_ab.formats.source_table import ROLES, SourceTable
from esper_ab.readers.not_outcomes import is_log_or_description

FORMATS = "esper_ab.formats.known"
NAMES = catalog.names(FORMATS)
FIELD = Path(__file__).parents[1] / "field" / "files"
FILES = sorted(
    file
    for file in FIELD.rglob("*")
    if file.is_file() and file.parent != FIELD and not is_log_or_description(file.name)
)


def entry(name: str) -> Format:
    return catalog.entry(FORMATS, name, "FORMAT")


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_format_begins_with_an_article(name):
    assert entry(name).name.startswith(("a ", "an ", "the "))


@pytest.mark.parametrize("name", NAMES)
def test_no_format_recognises_an_empty_file(name, tmp_path):
    file = tmp_path / "empty"
    file.write_bytes(b"")
    assert not entry(name).recognises(file, b"")


def check_table(table: SourceTable) -> None:
    rows = len(table.row_numbers)
    assert {len(cells) for cells in table.columns.values()} == {rows}
    assert table.roles.keys() <= {*ROLES}
    assert {*table.roles.values(), *table.outcomes} <= table.columns.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_tables_of_a_sample_file_are_consistent(file):
    file_format = format_of(file)
    assert file_format is not None
    for table in (*file_format.read(file), *(file_format.read_items or file_format.read)(file)):
        assert table.format == file_format.name
        check_table(table)


def check_damaged(file_format: Format, file: Path) -> None:
    """The file is read, or refused in one line that names it."""
    for read_file in (file_format.read, file_format.read_items or file_format.read):
        try:
            tables = read_file(file)
        except UsageError as error:
            message = str(error)
            assert message.startswith(str(file))
            assert "\n" not in message
        else:
            for table in tables:
                check_table(table)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_damaged_file_is_read_or_refused_in_one_line(file, tmp_path):
    file_format = format_of(file)
    assert file_format is not None
    content = file.read_bytes()
    random_source = random.Random(7)
    damaged_file = tmp_path / "damaged"
    for _ in range(8):
        changed_bytes = bytearray(content)
        for _ in range(random_source.randint(1, 4)):
            changed_bytes[random_source.randrange(len(content))] = random_source.randrange(256)
        damaged_file.write_bytes(changed_bytes)
        check_damaged(file_format, damaged_file)
        damaged_file.write_bytes(content[: random_source.randrange(len(content))])
        check_damaged(file_format, damaged_file)


@pytest.mark.parametrize("name", NAMES)
def test_foreign_content_is_read_or_refused_in_one_line(name, tmp_path):
    file = tmp_path / "other"
    deep_lists = b"[" * 100_000
    for content in (
        b"",
        b"\x00" * 100,
        b"{}",
        b"[]",
        b"[1]",
        b"null",
        deep_lists,
        b'{"a":' * 100_000,
        b"PK\x03\x04",
        b"#{\nr,l,t",
    ):
        file.write_bytes(content)
        try:
            check_damaged(entry(name), file)
        except StopIteration:
            pytest.fail(f"{name}: {content[:20]!r}")


def test_no_format_loads_a_pickle(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    file = tmp_path / "evil.npz"
    np.savez(file, results=np.array([Evil()], dtype=object), timesteps=np.array([1]))
    file_format = format_of(file)
    assert file_format is not None
    with pytest.raises(UsageError, match="Python objects"):
        file_format.read(file)
    assert not (tmp_path / "ran").exists()


def test_an_archive_with_too_large_contents_is_not_unpacked(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        for _ in range(300):
            member.write(bytes(2**20))
    file = tmp_path / "bomb.npz"
    file.write_bytes(buffer.getvalue())
    assert file.stat().st_size < 2**20
    file_format = format_of(file)
    assert file_format is not None
    with pytest.raises(UsageError, match="unpack to over 256 MiB"):
        file_format.read(file)
