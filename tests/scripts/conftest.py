"""Fixtures of the tests of the GitHub Action."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.actions.comments_api import Api
from support.actions.job_runner import Runner


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    thread = threading.Thread(target=api.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield api
    api.server.shutdown()
    api.server.server_close()
    thread.join()
