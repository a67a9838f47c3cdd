"""What several tests of processes need."""

from __future__ import annotations

import tempfile

import pytest


@pytest.fixture
def sockets():
    """A folder for sockets that a killed coordinator cannot remove; short, as socket paths have to be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield folder
