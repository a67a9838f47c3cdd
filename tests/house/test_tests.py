"""Tests as a house: a unit test lies where its module lies, and every test can fail."""

import ast
import re
from pathlib import Path

from house.sources import ROOT, breaking, nodes

UNIT = ROOT / "tests" / "unit"
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
_CHECKS = ("assert", "check")


def _modules_of(file: Path) -> list[Path]:
    """Return the modules that test_MODULE.py or test_MODULE_SUBJECT.py may be of."""
    words = file.stem.removeprefix("test_").split("_")
    folder = ROOT / file.relative_to(UNIT).parent
    return [folder / f"{'_'.join(words[:n])}.py" for n in range(1, len(words) + 1)]


def test_a_unit_test_lies_where_its_module_lies():
    files = [file for file in UNIT.rglob("*.py") if file.name != "conftest.py"]
    assert len(files) > 100
    assert not [file for file in files if not any(module.is_file() for module in _modules_of(file))]


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        return function in ("pytest.raises", "pytest.warns") or function.rpartition(".")[2].startswith(_CHECKS)
    return isinstance(node, ast.Assert)


def _without_assertion(source: str) -> list[str]:
    """Tests that fail by nothing but an exception: no assert, no pytest.raises, no call of assert_this, check_that."""
    functions = (node for node in nodes(source) if isinstance(node, ast.FunctionDef))
    tests = (function for function in functions if function.name.startswith("test_"))
    return [test.name for test in tests if not any(_asserts(node) for node in ast.walk(test))]


def test_every_test_asserts_something():
    assert breaking(_without_assertion, FILES) == set()


def _compared_with_itself(source: str) -> list[int]:
    """Lines with f(x) == f(x): in one process that sees no hash seed and no clock, and of a constant it is true."""
    comparisons = (node for node in nodes(source) if isinstance(node, ast.Compare))
    return [
        node.lineno
        for node in comparisons
        if isinstance(node.left, ast.Call)
        and isinstance(node.ops[0], ast.Eq)
        and ast.dump(node.left) == ast.dump(node.comparators[0])
    ]


def test_nothing_is_compared_with_itself():
    assert breaking(_compared_with_itself, FILES) == set()


# Standard error as a whole. `"words" in done.stderr` says what is looked for, and lets progress pass.
_WHOLE_STDERR = re.compile(r"""\b\w+\.stderr(?:\.strip\(\))?(?:\.splitlines\(|\.count\(['"]\\n|\)? == )""")


_LOOKED_FOR = ("without_progress(", "findall(", " in ")


def _compares_whole_stderr(source: str) -> list[str]:
    lines = [line for line in source.splitlines() if not any(word in line for word in _LOOKED_FOR)]
    return [line for line in lines if _WHOLE_STDERR.search(line)]


def test_no_test_of_processes_fails_because_a_busy_machine_has_made_a_command_say_what_it_waits_for():
    assert _compares_whole_stderr("assert len(ended.stderr.strip().splitlines()) == 1")
    assert _compares_whole_stderr("assert (done.returncode, done.stderr) == (0, '')")
    assert not _compares_whole_stderr("assert without_progress(done.stderr) == []")
    files = [file for folder in ("process", "cluster") for file in (ROOT / "tests" / folder).rglob("test_*.py")]
    assert breaking(_compares_whole_stderr, files) == set()
