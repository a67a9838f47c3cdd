"""Tie a coordinator process to the test that starts it. This module imports none of our packages."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent() -> None:
    """Ask Linux to kill this process when the test's process ends; its session of its own would let it live on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.environ.get("TEST_PID", str(os.getppid())) != str(os.getppid()):  # it had gone before
            sys.exit("the test is gone")
