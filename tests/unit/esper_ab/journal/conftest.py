"""A short journal."""

import pytest
from support.journals.short_journal import write

from esper_ab.journal.lock import JOURNAL_NAME


@pytest.fixture(scope="module")
def journal_bytes(tmp_path_factory):
    return write(tmp_path_factory.mktemp("journal")).read_bytes()


@pytest.fixture
def path(tmp_path, journal_bytes):
    """Write the short journal to a directory of this test."""
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes)
    return tmp_path / JOURNAL_NAME
