"""Skip tests that need a compiler where there is none, except in CI."""

import os
import shutil

import pytest

IN_CI = os.environ.get("CI") == "true"
needs_compiler = pytest.mark.skipif(
    not IN_CI and not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="no C++ compiler on this machine"
)
