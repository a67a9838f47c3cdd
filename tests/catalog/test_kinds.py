"""Kinds of task: a worker loads those of its runs, and no other."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.children import environment

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import GROWTH

KINDS = "workers.kinds"
NAMES = catalog.names(KINDS)
OF_GROWTH = {"workers.growth", "workers.datasets"}  # the kernel computes the policies of others, too


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_loads_no_other(name: str) -> None:
    loading = f"import sys, {KINDS}.{name}; print(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", loading], capture_output=True, text=True, check=True, env=environment()
    )
    loaded = set(child.stdout.split())
    assert {other for other in NAMES if f"{KINDS}.{other}" in loaded} == {name}
    assert loaded & OF_GROWTH == (OF_GROWTH if name == GROWTH else set())
