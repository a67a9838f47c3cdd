"""Kinds of task: a worker loads those of its runs, and no other."""

import pytest
from support.children import python

from esper_ab.contracts import catalog
from esper_ab.contracts.kinds_of_task import GROWTH

KINDS = "workers.kinds"
NAMES = catalog.names(KINDS)
OF_GROWTH = {"workers.growth", "workers.datasets"}  # the kernel computes the policies of others, too


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_loads_no_other(name: str) -> None:
    loading = f"import sys, {KINDS}.{name}; print(*sys.modules)"
    loaded = set(python("-c", loading).stdout.split())
    assert {other for other in NAMES if f"{KINDS}.{other}" in loaded} == {name}
    assert loaded & OF_GROWTH == (OF_GROWTH if name == GROWTH else set())
