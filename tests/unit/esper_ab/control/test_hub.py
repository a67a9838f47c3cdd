"""The coordinator's socket, before any message."""

import tempfile
from pathlib import Path

import pytest
import zmq

from esper_ab.control.hub import Hub


@pytest.fixture
def temporary(monkeypatch):
    """Let temporary folders lie in an own one, whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="h-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_a_hub_that_cannot_listen_leaves_no_folder(temporary):
    with pytest.raises(zmq.ZMQError):
        Hub("tcp", "203.0.113.1")  # an address of no machine
    assert list(temporary.iterdir()) == []


def test_a_closed_hub_leaves_no_folder(temporary):
    hub = Hub()
    assert len(list(temporary.iterdir())) == 1
    hub.close()
    assert list(temporary.iterdir()) == []
