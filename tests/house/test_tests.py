"""Rules for tests: unit tests mirror the packages, and every test can fail."""

import ast
import re
from pathlib import Path

from house.sources import ROOT, breaking, nodes

UNIT = ROOT / "tests" / "unit"
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
_CHECKS = ("assert", "check")


def _modules_of(file: Path) -> list[Path]:
    """Return the modules that a file test_MODULE.py or test_MODULE_SUBJECT.py may test."""
    parts = file.stem.removeprefix("test_").split("_")
    folder = ROOT / file.relative_to(UNIT).parent
    return [folder / f"{'_'.join(parts[:n])}.py" for n in range(1, len(parts) + 1)]


def test_a_unit_test_file_mirrors_the_path_of_its_module():
    files = [file for file in UNIT.rglob("*.py") if file.name != "conftest.py"]
    assert len(files) > 100
    assert not [file for file in files if not any(module.is_file() for module in _modules_of(file))]


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        return function in ("pytest.raises", "pytest.warns") or function.rpartition(".")[2].startswith(_CHECKS)
    return isinstance(node, ast.Assert)


def _without_assertion(source: str) -> list[str]:
    """Tests without an assertion: no assert, no pytest.raises, no call of assert_* or check_*."""
    functions = (node for node in nodes(source) if isinstance(node, ast.FunctionDef))
    tests = (function for function in functions if function.name.startswith("test_"))
    return [test.name for test in tests if not any(_asserts(node) for node in ast.walk(test))]


def test_every_test_asserts_something():
    assert breaking(_without_assertion, FILES) == set()


def _compared_with_itself(source: str) -> list[int]:
    """Lines with f(x) == f(x), which within one process cannot fail."""
    comparisons = (node for node in nodes(source) if isinstance(node, ast.Compare))
    return [
        node.lineno
        for node in comparisons
        if isinstance(node.left, ast.Call)
        and isinstance(node.ops[0], ast.Eq)
        and ast.dump(node.left) == ast.dump(node.comparators[0])
    ]


def test_no_test_compares_a_call_with_itself():
    assert breaking(_compared_with_itself, FILES) == set()


# Comparisons of the whole of stderr, which fail if a busy machine prints progress; `"words" in done.stderr` does not.
_WHOLE_STDERR = re.compile(r"""\b\w+\.stderr(?:\.strip\(\))?(?:\.splitlines\(|\.count\(['"]\\n|\)? == )""")


_LOOKED_FOR = ("without_progress(", "findall(", " in ")


def _compares_whole_stderr(source: str) -> list[str]:
    lines = [line for line in source.splitlines() if not any(name in line for name in _LOOKED_FOR)]
    return [line for line in lines if _WHOLE_STDERR.search(line)]


def test_process_tests_ignore_progress_lines_when_they_compare_stderr():
    assert _compares_whole_stderr("assert len(ended.stderr.strip().splitlines()) == 1")
    assert _compares_whole_stderr("assert (done.returncode, done.stderr) == (0, '')")
    assert not _compares_whole_stderr("assert without_progress(done.stderr) == []")
    files = [file for folder in ("process", "cluster") for file in (ROOT / "tests" / folder).rglob("test_*.py")]
    assert breaking(_compares_whole_stderr, files) == set()
