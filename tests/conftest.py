"""No deadline and no shrinking of Hypothesis examples; a cache of our own; one thread of torch, as a worker has.

On a busy machine a deadline measures the neighbours, and an example that fails is shrunk for longer than a test may
take: `--hypothesis-profile shrink` looks for one anew and makes it small; Hypothesis takes one from its database for
small already. The cache, of boundaries, fonts and downloads, is not the user's, and shared by the processes of one
session. `esper-ab` is on PATH, as in an environment that is active, so that printed commands begin with it. What tests
start compiles our sources once. Ctrl-C is heard by what tests start, also where a shell started
pytest in the background, which makes it deaf. Tiny tensors gain nothing from more threads, and a busy machine loses
much.
"""

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

_WAITING = {"catalog", "docs", "faults", "field", "gpu", "process", "recipes"}
_POOL = os.environ.get("CUDA_VISIBLE_DEVICES")

hypothesis.settings.register_profile(
    "shrink", deadline=None, phases=[phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.reuse]
)
_QUICK_TO_FAIL = [phase for phase in hypothesis.Phase if phase.name not in ("shrink", "explain")]
hypothesis.settings.register_profile("commit", deadline=None, print_blob=True, phases=_QUICK_TO_FAIL)
hypothesis.settings.register_profile("nightly", deadline=None, print_blob=True, phases=_QUICK_TO_FAIL, max_examples=600)
hypothesis.settings.load_profile("commit")


def pytest_configure(config):
    os.environ["TEST_PID"] = str(os.getpid())  # for those who are not to outlive it
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):  # a worker of xdist has it from the process that started it
        config.esper_ab_cache = os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="esper_ab_tests-")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(config.esper_ab_cache, ignore_errors=True)


def pytest_terminal_summary(terminalreporter):
    """Whether the test device (tests/gpu) ran what needs no real GPU, or why not."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
    for report in terminalreporter.stats.get("skipped", []):
        if "test device" in str(report.longrepr[2]):
            terminalreporter.write_line(f"{report.nodeid}: {report.longrepr[2]}")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let no garbage collection look at what collecting makes: half a million objects, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    """Spread files whose tests wait for processes among those that compute, so that no core idles for minutes.

    Only in a worker of xdist, which takes a file after the other.
    """
    if not hasattr(config, "workerinput"):
        return
    kinds = {True: {}, False: {}}  # by whether it waits: file -> its tests
    for item in items:
        waits = item.path.relative_to(Path(__file__).parent).parts[0] in _WAITING
        kinds[waits].setdefault(item.path, []).append(item)
    shares = [
        (place / len(files), waits, tests)
        for waits, files in kinds.items()
        for place, tests in enumerate(files.values())
    ]
    items[:] = [item for *_, tests in sorted(shares, key=lambda share: share[:2]) for item in tests]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Only tests that ask for GPUs see them; torch has one thread before the first fixture, of any scope, trains."""
    if "torch" in sys.modules:  # many tests need none, and its import takes a second
        sys.modules["torch"].set_num_threads(1)
    if item.get_closest_marker("gpu") is None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif _POOL is None:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = _POOL


@pytest.fixture(scope="module")
def warm_children():
    """Children that import torch are forked from a process that has done so."""
    from support.processes import warm_children

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", warm_children.Popen)
        yield


@pytest.fixture(autouse=True)
def _torch_as_it_was():
    """What a command pins for its process (process/arithmetic.py) is undone: the next test has it from nobody."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    mode = torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    cublas = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    yield
    torch.set_deterministic_debug_mode(mode)
    torch.utils.deterministic.fill_uninitialized_memory = fill
    if cublas is None:
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    else:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = cublas
