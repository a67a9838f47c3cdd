"""The shelves of docs: a small one for users, evidence and internals beside it; generated pages name their command."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_PAGES, MOST_WORDS = 18, 20_000
GENERATED = [
    *(page for page in sorted((DOCS / "evidence").rglob("*.md")) if page.name != "README.md"),
    *(page for page in sorted(DOCS.glob("*/*.md")) if "<!-- " in page.read_text() and page.parent.name != "evidence"),
]


def names_its_command(text: str) -> bool:
    """Whether one of the first lines says which command writes the page or its tables."""
    return bool(re.search(r"\b[Ww]ritten by\s+`[^`]+`", "\n".join(text.splitlines()[:6])))


def test_the_users_shelf_is_small():
    pages = [page.read_text() for page in DOCS.glob("*.md")]
    assert 0 < len(pages) <= MOST_PAGES
    assert sum(len(text.split()) for text in pages) <= MOST_WORDS  # as `wc -w` counts them


def test_there_are_no_other_shelves():
    assert {path.name for path in DOCS.iterdir() if path.is_dir()} == {"evidence", "internals", "examples"}


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_a_generated_page_names_its_command(page):
    assert names_its_command(page.read_text())


def test_a_page_without_a_command_would_be_found():
    assert not names_its_command("# Speed\n\nMeasured on two cores.\n" + "\n" * 9 + "Written by `scripts/bench`.\n")
    assert names_its_command("# Speed\n\nThe tables are written by\n`scripts/bench`.\n")
