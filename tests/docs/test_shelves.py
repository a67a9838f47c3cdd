"""The shelves of docs: a small one for users, evidence and internals beside it; generated pages name their command."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_PAGES = 18
GENERATED = [
    *(page for page in sorted((DOCS / "evidence").rglob("*.md")) if page.name != "README.md"),
    *(page for page in sorted(DOCS.glob("*/*.md")) if "<!-- " in page.read_text() and page.parent.name != "evidence"),
]


def test_the_users_shelf_is_small():
    assert 0 < len(list(DOCS.glob("*.md"))) <= MOST_PAGES


def test_there_are_no_other_shelves():
    assert {path.name for path in DOCS.iterdir() if path.is_dir()} == {"evidence", "internals", "examples"}


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_a_generated_page_names_its_command(page):
    """In one of its first lines: the one that writes it or its tables."""
    assert re.search(r"\b[Ww]ritten by\s+`[^`]+`", "\n".join(page.read_text().splitlines()[:6]))
