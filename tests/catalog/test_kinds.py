"""Kinds of task: each has a folder that is found by its name; a worker loads only the kind of its runs."""

import pytest
from support.processes.children import python

from esper_ab.contracts import catalog
from workers.environments import Kind

KINDS = "workers.kinds"
NAMES = catalog.folders(KINDS)


def test_all_three_kinds_of_task_are_found() -> None:
    assert {"growth", "gymnasium", "trainer"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_of_task_is_loaded_from_its_folder(name: str) -> None:
    assert isinstance(catalog.entry(f"{KINDS}.{name}", "kind", "KIND"), Kind)


@pytest.mark.parametrize("name", NAMES)
def test_loading_a_kind_loads_no_other_kind(name: str) -> None:
    script = f"import sys, {KINDS}.{name}.kind; print(*sys.modules)"
    loaded_modules = set(python("-c", script).stdout.split())
    assert {kind for kind in NAMES if f"{KINDS}.{kind}" in loaded_modules} == {name}


def test_importing_the_folder_of_kinds_loads_no_kind() -> None:
    loaded_modules = set(python("-c", f"import sys, {KINDS}; print(*sys.modules)").stdout.split())
    assert not loaded_modules & {"torch", "gymnasium", *(f"{KINDS}.{name}" for name in NAMES)}


def test_the_trainer_kind_loads_no_torch() -> None:
    loaded_modules = set(python("-c", f"import sys, {KINDS}.trainer.kind; print(*sys.modules)").stdout.split())
    assert not loaded_modules & {"torch", "gymnasium"}
