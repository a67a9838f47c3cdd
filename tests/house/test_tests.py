"""Tests as a house: a unit test lies where its module lies, and every test can fail."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from house.sources import ROOT, every

UNIT = ROOT / "tests" / "unit"
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
_CHECKS = ("assert", "check")


def _modules_of(file: Path) -> list[Path]:
    """Return the modules that test_MODULE.py or test_MODULE_SUBJECT.py may be of."""
    words = file.stem.removeprefix("test_").split("_")
    folder = ROOT / file.relative_to(UNIT).parent
    return [folder / f"{'_'.join(words[:n])}.py" for n in range(1, len(words) + 1)]


@pytest.mark.parametrize("file", sorted(UNIT.rglob("*.py")), ids=lambda file: str(file.relative_to(UNIT)))
def test_a_unit_test_lies_where_its_module_lies(file: Path) -> None:
    assert file.name == "conftest.py" or any(module.is_file() for module in _modules_of(file))


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        return function in ("pytest.raises", "pytest.warns") or function.rpartition(".")[2].startswith(_CHECKS)
    return isinstance(node, ast.Assert)


def _without_assertion(source: str) -> list[str]:
    """Tests that fail by nothing but an exception: no assert, no pytest.raises, no call of assert_this, check_that."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    tests = (function for function in functions if function.name.startswith("test_"))
    return [test.name for test in tests if not any(_asserts(node) for node in ast.walk(test))]


@every(FILES)
def test_every_test_asserts_something(path: Path) -> None:
    assert _without_assertion(path.read_text(encoding="utf-8")) == []


def _compared_with_itself(source: str) -> list[int]:
    """Lines with f(x) == f(x): in one process that sees no hash seed and no clock, and of a constant it is true."""
    comparisons = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare))
    return [
        node.lineno for node in comparisons
        if isinstance(node.left, ast.Call) and isinstance(node.ops[0], ast.Eq)
        and ast.dump(node.left) == ast.dump(node.comparators[0])
    ]


@every(FILES)
def test_nothing_is_compared_with_itself(path: Path) -> None:
    assert _compared_with_itself(path.read_text(encoding="utf-8")) == []
