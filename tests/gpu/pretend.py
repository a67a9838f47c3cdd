"""A plugin of pytest, `-p gpu.pretend`: a server with PRETENDED_GPUS GPUs and NVIDIA's build of torch.

Tests are set up and torn down as on that server, so that each is skipped for the reasons that it would have there; no
test's body is run. The skipped ones are written to the file PRETENDED_SKIPS as JSON: by reason, their names.
"""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
import torch

COUNT = int(os.environ["PRETENDED_GPUS"])
torch.__version__ = "2.13.0+cu130"
torch.version.cuda = "13.0"
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: COUNT
torch.cuda.get_device_capability = lambda *_: (9, 0)
skipped: dict[str, list[str]] = defaultdict(list)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> bool:
    """Take the place of a test's body."""
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        skipped[report.longrepr[2].removeprefix("Skipped: ")].append(report.nodeid.rpartition("/")[2])


def pytest_sessionfinish() -> None:
    Path(os.environ["PRETENDED_SKIPS"]).write_text(json.dumps(skipped))
