"""A short journal."""

from __future__ import annotations

import pytest
from support.short_journal import write


@pytest.fixture(scope="module")
def journal_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("journal")).read_bytes()
