"""An experiment directory to read."""

from pathlib import Path

import pytest
from support.journals.ready_journals import three_groups, write


@pytest.fixture(scope="module")
def experiment_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of three groups, finished; for tests that do not write to it."""
    return write(tmp_path_factory.mktemp("runs") / "three", three_groups())
