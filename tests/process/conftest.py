"""What several tests of processes need."""

import tempfile

import pytest


@pytest.fixture
def sockets():
    """A folder for sockets that a killed coordinator cannot remove; short, as socket paths have to be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield folder


@pytest.fixture(scope="module")
def trackers_offline():
    """No tracker of a test can reach anything: a proxy that nobody listens at, and no key."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")
        patch.setenv("WANDB_MODE", "offline")
        yield
