"""Fixtures shared by the tests of processes."""

import tempfile

import pytest


@pytest.fixture
def sockets():
    """A temporary folder for sockets that a killed coordinator leaves; its path is short, as socket paths must be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield folder


@pytest.fixture(scope="module")
def trackers_offline():
    """Keep trackers off the network: the proxy is a closed port, and there is no API key."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")
        patch.setenv("WANDB_MODE", "offline")
        yield
