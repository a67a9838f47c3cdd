"""Where GPUs of a test come from: the machine's own, or the test device (device/); and how a worker pins them.

A test gets the machine's own GPUs wherever it can use them. A test that starts commands takes `gpus`; one that needs
GPUs made for it, with faults or another memory, takes `made_gpus`; one that counts calls takes `counted`. The last two
need the test device. What a test does with a GPU in its own process runs on the test device in a process of its own
(test_test_device.py). Tests marked `real_gpu` are about what the test device does not have: other numbers than the
CPU's, speed, streams. Every reason to skip a test is here, so that test_skipped.py has them all.
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
from support.kernels.compiler import IN_CI

from esper_ab.contracts.settings import Arithmetic
from workers.devices.by_torch import pin

ON_TEST_DEVICE = "TEST_GPUS" in os.environ
COUNT = torch.cuda.device_count() if torch.cuda.is_available() else 0  # GPUs of this process
REAL = COUNT > 0 and not ON_TEST_DEVICE
PINNED = re.search(r"^torch==(\S+)", (Path(__file__).parents[2] / "constraints.txt").read_text(), re.MULTILINE)
NUMBERS = {1: "a GPU", 2: "two GPUs", 4: "four GPUs", 8: "eight GPUs"}


def needed(item: pytest.Item) -> int:
    """Return how many GPUs a test needs."""
    mark = item.get_closest_marker("gpus")
    return 1 if mark is None else mark.args[0]


def reason_to_skip(item: pytest.Item) -> str:
    """Return why a test of GPUs cannot run here; "" if it can, or if only the fixture `test_device` can tell."""
    fixtures = set(getattr(item, "fixturenames", ()))  # with those that its fixtures take
    if item.get_closest_marker("real_gpu") and not REAL:
        return "needs a real GPU"
    if REAL and fixtures & {"test_device", "counted"}:
        return "needs the test device"
    if not COUNT:
        return "" if fixtures & {"gpus", "test_device"} else "needs a GPU in its own process"
    if needed(item) > COUNT and "test_device" not in fixtures:
        return f"needs {NUMBERS[needed(item)]}"
    if item.get_closest_marker("bf16") and torch.cuda.get_device_capability() < (8, 0):
        return "needs a GPU with bfloat16"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before pytest looks for marks to skip: asking for a capability initialises CUDA, which collecting must not."""
    if item.get_closest_marker("gpu") and (reason := reason_to_skip(item)):
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def test_device(pytestconfig: pytest.Config) -> Path:
    """The library of the test device, built once for a torch."""
    version, _, build_kind = torch.__version__.partition("+")
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), "")
    assert PINNED is not None
    if REAL:
        pytest.skip("the test device is for machines without a GPU")
    if version != PINNED[1] or build_kind != "cpu":
        reason = f"the test device is for torch {PINNED[1]}+cpu, this is {torch.__version__}"
        assert not IN_CI, reason
        pytest.skip(reason)
    if not compiler and not IN_CI:
        pytest.skip("the test device takes a C++ compiler")
    cache = pytestconfig.rootpath / ".pytest_cache" / "test-device"  # also with `-p no:cacheprovider`
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # for tests in several processes
        return build.library(cache, compiler, Path(torch.__file__).parent, torch.__version__)


@pytest.fixture
def made_gpus(request: pytest.FixtureRequest, tmp_path: Path, test_device: Path) -> Callable[..., dict[str, str]]:
    """Variables of a process with GPUs of the test device; keywords change what they are like (device/build.py)."""

    def environment(**options: object) -> dict[str, str]:
        (folder := tmp_path / "gpus").mkdir(exist_ok=True)
        return build.environment(folder, test_device, needed(request.node), **options)

    return environment


@pytest.fixture
def gpus(request: pytest.FixtureRequest) -> dict[str, str]:
    """Variables of a process with as many GPUs as the test needs, at least: real ones, or those of the test device."""
    return dict(os.environ) if REAL else request.getfixturevalue("made_gpus")()


@pytest.fixture
def counted() -> Callable[..., int]:
    """How often this process has done something with a GPU (sitecustomize.COUNTS), as the test device counts it."""

    def count(counter: str, gpu: int = 1) -> int:
        return torch.test_gpus.count(gpu, counter)

    return count


def _pinned(monkeypatch: pytest.MonkeyPatch, *, deterministic: bool) -> Iterator[None]:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that monkeypatch restores it
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    pin(Arithmetic(deterministic=deterministic))
    yield
    torch.set_deterministic_debug_mode("default")


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Deterministic arithmetic, the default of workers."""
    yield from _pinned(monkeypatch, deterministic=True)


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.real_gpu)], ids=["deterministic", "free"])
def pinned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Deterministic and free arithmetic."""
    yield from _pinned(monkeypatch, deterministic=request.param)
