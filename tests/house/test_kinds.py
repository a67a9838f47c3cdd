"""The name of a kind of task appears only in its own folder and in kinds_of_task.py."""

import ast

from house.sources import SOURCES, breaking, name_of, nodes

from esper_ab.contracts.kinds_of_task import kinds

_CONSTANTS = {"GROWTH", "GYMNASIUM", "TRAINER"}
_KNOWING = (
    "esper_ab/kinds/",
    "workers/kinds/",
    "esper_ab/contracts/kinds_of_task.py",
    "workers/process/entry.py",  # a worker that only guards a trainer's command starts without torch
)
_OUTSIDE_KINDS = [path for path in SOURCES if not name_of(path).startswith(_KNOWING)]


def _branches(source: str) -> list[int]:
    """Return the lines that import the name of a kind from the contracts, or compare some kind with it."""
    lines = []
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom) and node.module == "esper_ab.contracts.kinds_of_task":
            if {alias.name for alias in node.names} & _CONSTANTS:
                lines.append(node.lineno)
        elif isinstance(node, ast.Compare) and "kind" in ast.unparse(node):
            sides = (node.left, *node.comparators)
            if {side.value for side in sides if isinstance(side, ast.Constant)} & set(kinds()):
                lines.append(node.lineno)
    return lines


def test_no_module_outside_kinds_checks_the_kind_of_a_task():
    assert _branches("if task.kind == 'growth': pass") == [1]
    assert len(_OUTSIDE_KINDS) > 300
    assert breaking(_branches, _OUTSIDE_KINDS) == set()
