"""No deadline per Hypothesis example; a cache of its own.

On a busy machine a deadline measures the neighbours. The cache, of boundaries and downloads, is not the user's. Ctrl-C
is heard by what tests start, also where a shell started pytest in the background, which makes it deaf.
"""

import os
import shutil
import signal
import tempfile

import hypothesis
import pytest

_POOL = os.environ.get("CUDA_VISIBLE_DEVICES")

hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")


def pytest_configure(config):
    os.environ["TEST_PID"] = str(os.getpid())  # for those who are not to outlive it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.esper_ab_cache = os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="esper_ab_tests-")


def pytest_unconfigure(config):
    shutil.rmtree(config.esper_ab_cache, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Only tests that ask for GPUs see them: what the others start is to run on the CPUs that they speak of."""
    if item.get_closest_marker("gpu") is None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif _POOL is None:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = _POOL
