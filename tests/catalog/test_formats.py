"""The contract of every file in esper_ab/readers/formats: damaged files give one line, never a traceback."""

import pytest

from esper_ab.contracts import catalog
from esper_ab.readers.formats import Format

FORMATS = "esper_ab.readers.formats"


@pytest.fixture(params=catalog.names(FORMATS))
def file_format(request: pytest.FixtureRequest) -> Format:
    return catalog.entry(FORMATS, request.param, "FORMAT")


def test_the_name_of_a_format_has_an_article(file_format):
    assert file_format.name.startswith(("a ", "an ", "the "))


def test_a_format_does_not_recognise_an_empty_file(file_format, tmp_path):
    file = tmp_path / "empty"
    file.write_bytes(b"")
    assert not file_format.recognises(file, b"")
