"""Whether this machine can build the kernel: what needs it is skipped elsewhere, never in CI."""

import os
import shutil

import pytest

IN_CI = os.environ.get("CI") == "true"
needs_compiler = pytest.mark.skipif(
    not IN_CI and not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="no C++ compiler on this machine"
)
