"""source-map.md and ddp.md in docs/internals: every ticket has its row, every test they name exists, and two habits
hold that no other test watches."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

from house.sources import ROOT, SOURCES, nodes

MAP = (ROOT / "docs" / "internals" / "source-map.md").read_text()
TICKETS = [
    *(f"B8-PT-{n:02d}" for n in (1, 2, 3, 4, 5, 7)),
    *(f"B8-CR-{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)),
    *(f"B8-DRL-{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13)),
]


@functools.cache
def functions_of(path: Path) -> set[str]:
    return {node.name for node in nodes(path.read_text()) if isinstance(node, ast.FunctionDef)}


def folder_of(path: str) -> str:
    """Of tests that are named by a path: by that of a module's room, or of a folder of tests."""
    return f"tests/unit/{path}" if path.split("/")[0] in ("esper_ab", "workers") else f"tests/{path}"


def named() -> list[tuple[str, str]]:
    """(file, function) of every test that the two pages name, in either way of writing."""
    short = [(f"{folder_of(path)}/test_{file}.py", f"test_{name}")
             for path, file, name in re.findall(r"`([\w/]+)/(\w+)::(\w+)`", MAP)]
    decision = (ROOT / "docs" / "internals" / "ddp.md").read_text()
    return sorted({*short, *re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", decision)})


def test_every_ticket_has_one_row() -> None:
    for ticket in TICKETS:
        assert len(re.findall(rf"^\| {ticket}\b", MAP, flags=re.MULTILINE)) == 1, ticket


def test_every_row_is_complete() -> None:
    rows = [line for line in MAP.splitlines() if line.startswith("| ")]
    assert len(rows) > 60
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 3, row
        assert all(cells), row
        assert not re.fullmatch(r"[A-Z]+", cells[2]), row


def test_a_named_test_exists() -> None:
    assert len(named()) > 60
    assert not [(file, name) for file, name in named() if name not in functions_of(ROOT / file)]


def files_named() -> list[tuple[str, str]]:
    """(page or module, file of tests) wherever one is named by its path."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *SOURCES]
    return [(str(page.relative_to(ROOT)), file) for page in pages
            for file in re.findall(r"(?<![*\w])tests/[\w/]+\.\w+", page.read_text())]  # in *italics* it is no file's


def test_a_named_file_of_tests_exists() -> None:
    assert len(files_named()) > 40
    assert not [(page, file) for page, file in files_named() if not (ROOT / file).exists()]


def test_no_import_stands_in_a_loop() -> None:
    """An import within a loop is paid for in every turn, and hides what a module needs."""
    for path in SOURCES:
        loops = (node for node in nodes(path.read_text()) if isinstance(node, ast.For | ast.While))
        for loop in loops:
            inside = [node for node in ast.walk(loop) if isinstance(node, ast.Import | ast.ImportFrom)]
            assert not inside, f"{path.relative_to(ROOT)}:{inside[0].lineno}"


def _share(term: ast.expr) -> float | None:
    """The literal factor of `0.9 * x`."""
    if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult):
        for side in (term.left, term.right):
            if isinstance(side, ast.Constant) and isinstance(side.value, float):
                return side.value
    return None


def literal_averages(source: str) -> list[int]:
    """Lines with a smoothing whose weight is written where it is used: 0.9 * x + 0.1 * y, or lerp(x, 0.1)."""
    lines = []
    for node in nodes(source):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            a, b = _share(node.left), _share(node.right)
            if a is not None and b is not None and abs(a + b - 1.0) < 1e-9:
                lines.append(node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("lerp", "lerp_"):
            lines += [node.lineno for arg in node.args if isinstance(arg, ast.Constant)]
    return lines


def test_smoothing_constants_have_one_place() -> None:
    assert literal_averages("y = 0.9 * y + x * 0.1") == [1]
    assert literal_averages("y.lerp_(x, 0.1)") == [1]
    for path in (ROOT / "workers").rglob("*.py"):
        assert not literal_averages(path.read_text()), path.relative_to(ROOT)
