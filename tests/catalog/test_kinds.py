"""Kinds of task: one folder each, found by its name; a worker loads the kind of its runs, and no other."""

import pytest
from support.processes.children import python

from esper_ab.contracts import catalog
from workers.environments import Kind

KINDS = "workers.kinds"
NAMES = catalog.folders(KINDS)


def test_there_are_kinds() -> None:
    assert {"growth", "gymnasium", "trainer"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_is_an_object_of_its_folder(name: str) -> None:
    assert isinstance(catalog.entry(f"{KINDS}.{name}", "kind", "KIND"), Kind)


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_loads_no_other(name: str) -> None:
    loading = f"import sys, {KINDS}.{name}.kind; print(*sys.modules)"
    loaded = set(python("-c", loading).stdout.split())
    assert {other for other in NAMES if f"{KINDS}.{other}" in loaded} == {name}


def test_the_folder_of_kinds_loads_none() -> None:
    loaded = set(python("-c", f"import sys, {KINDS}; print(*sys.modules)").stdout.split())
    assert not loaded & {"torch", "gymnasium", *(f"{KINDS}.{name}" for name in NAMES)}


def test_the_kind_of_workers_that_only_guard_a_command_needs_no_torch() -> None:
    loaded = set(python("-c", f"import sys, {KINDS}.trainer.kind; print(*sys.modules)").stdout.split())
    assert not loaded & {"torch", "gymnasium"}
