"""Where GPUs of a test come from: the machine's own, or the test device (device/); and how a worker pins them.

What a test does with a GPU in its own process runs on the test device in a process of its own (test_test_device.py).
Tests marked `real_gpu` are about what that one does not have: other numbers than the CPU's, speed, streams.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from gpu.device import build
from support.compiler import IN_CI

from esper_ab.contracts.settings import Arithmetic
from workers.devices.by_torch import pin

ON_TEST_DEVICE = "TEST_GPUS" in os.environ
REAL = torch.cuda.is_available() and not ON_TEST_DEVICE
PINNED = re.search(r"^torch==(\S+)", (Path(__file__).parents[2] / "constraints.txt").read_text(), re.MULTILINE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("real_gpu") and not REAL:
            item.add_marker(pytest.mark.skip(reason="needs a real GPU"))


@pytest.fixture(scope="session")
def test_device(pytestconfig: pytest.Config) -> Path:
    """The library of the test device, built once for a torch."""
    version, _, build_of = torch.__version__.partition("+")
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), "")
    assert PINNED is not None
    if version != PINNED[1] or build_of != "cpu":
        pytest.skip(f"the test device is for torch {PINNED[1]}+cpu, this is {torch.__version__}")
    if not compiler and not IN_CI:
        pytest.skip("the test device takes a C++ compiler")
    cache = pytestconfig.rootpath / ".pytest_cache" / "test-device"  # also with `-p no:cacheprovider`
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of tests
        return build.library(cache, compiler, Path(torch.__file__).parent, torch.__version__)


@pytest.fixture
def gpus(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Variables of a process with so many GPUs: real ones, or, with what they are like, those of the test device."""

    def environment(count: int, **made: object) -> dict[str, str]:
        if REAL and not made:
            if torch.cuda.device_count() < count:
                pytest.skip(f"fewer than {count} GPUs")
            return dict(os.environ)
        (folder := tmp_path / "gpus").mkdir(exist_ok=True)
        return build.environment(folder, request.getfixturevalue("test_device"), count, **made)

    return environment


def _pinned(monkeypatch: pytest.MonkeyPatch, *, deterministic: bool) -> Iterator[None]:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is as it was afterwards
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    pin(Arithmetic(deterministic=deterministic))
    yield
    torch.set_deterministic_debug_mode("default")


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As workers compute by default."""
    yield from _pinned(monkeypatch, deterministic=True)


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.real_gpu)], ids=["deterministic", "free"])
def pinned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both ways in which workers compute."""
    yield from _pinned(monkeypatch, deterministic=request.param)
