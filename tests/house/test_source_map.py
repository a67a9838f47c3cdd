"""source-map.md, ddp.md and gpu-tests.md in docs/internals: a row per ticket, and every named test exists."""

import ast
import functools
import re
from pathlib import Path

from house.sources import ROOT, SOURCES, nodes

MAP = (ROOT / "docs" / "internals" / "source-map.md").read_text()
GPU_TESTS = (ROOT / "docs" / "internals" / "gpu-tests.md").read_text()
TICKETS = [
    *(f"B8-PT-{n:02d}" for n in (1, 2, 3, 4, 5, 7)),
    *(f"B8-CR-{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)),
    *(f"B8-DRL-{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13)),
]


@functools.cache
def functions_of(path: Path) -> set[str]:
    return {node.name for node in nodes(path.read_text()) if isinstance(node, ast.FunctionDef)}


def folder_of(path: str) -> str:
    """The folder of a test that is named by its module's room or by a folder of tests."""
    return f"tests/unit/{path}" if path.split("/")[0] in ("esper_ab", "workers") else f"tests/{path}"


def named() -> list[tuple[str, str]]:
    """(file, function) of every test that the pages name, in either notation."""
    short_names = [
        (f"{folder_of(path)}/test_{file}.py", f"test_{name}")
        for path, file, name in re.findall(r"`([\w/]+)/(\w+)::(\w+)`", MAP + GPU_TESTS)
    ]
    decision = (ROOT / "docs" / "internals" / "ddp.md").read_text()
    return sorted({*short_names, *re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", decision)})


def test_every_ticket_has_one_row_in_the_source_map():
    for ticket in TICKETS:
        assert len(re.findall(rf"^\| {ticket}\b", MAP, flags=re.MULTILINE)) == 1, ticket


def test_every_row_of_the_source_map_is_complete():
    rows = [line for line in MAP.splitlines() if line.startswith("| ")]
    assert len(rows) > 60
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 3, row
        assert all(cells), row
        assert not re.fullmatch(r"[A-Z]+", cells[2]), row


def test_every_test_named_in_a_page_exists():
    assert len(named()) > 60
    assert not [(file, name) for file, name in named() if name not in functions_of(ROOT / file)]


def files_named() -> list[tuple[str, str]]:
    """(page or module, test file) for every test file named by path."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *SOURCES]
    return [
        (str(page.relative_to(ROOT)), file)
        for page in pages
        for file in re.findall(r"(?<![*\w])tests/[\w/]+\.\w+", page.read_text())
    ]  # *italic* paths are placeholders


def test_every_test_file_named_in_a_page_exists():
    assert len(files_named()) > 40
    assert not [(page, file) for page, file in files_named() if not (ROOT / file).exists()]
