"""The contract of every file in esper_ab/readers/formats: damaged files give one line, never a traceback."""

import pytest

from esper_ab.contracts import catalog
from esper_ab.readers.formats import Format

FORMATS = "esper_ab.readers.formats"


@pytest.fixture(params=catalog.names(FORMATS))
def known(request: pytest.FixtureRequest) -> Format:
    return catalog.entry(FORMATS, request.param, "FORMAT")


def test_its_name_has_an_article(known):
    assert known.name.startswith(("a ", "an ", "the "))


def test_it_does_not_recognise_an_empty_file(known, tmp_path):
    file = tmp_path / "empty"
    file.write_bytes(b"")
    assert not known.recognises(file, b"")
