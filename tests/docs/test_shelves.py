"""The folders of docs: few pages for users; evidence and internals apart; generated pages name their command."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_PAGES = 20
GENERATED = [
    *(page for page in sorted((DOCS / "evidence").rglob("*.md")) if page.name != "README.md"),
    *(page for page in sorted(DOCS.glob("*/*.md")) if "<!-- " in page.read_text() and page.parent.name != "evidence"),
]


def test_the_number_of_user_pages_is_limited():
    assert 0 < len(list(DOCS.glob("*.md"))) <= MOST_PAGES


def test_the_docs_folder_has_only_the_listed_folders():
    assert {path.name for path in DOCS.iterdir() if path.is_dir()} == {"evidence", "internals", "examples"}


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_a_generated_page_names_the_command_that_writes_it(page):
    """The command that writes the page or its tables is in the first lines."""
    assert re.search(r"\b[Ww]ritten by\s+`[^`]+`", "\n".join(page.read_text().splitlines()[:6]))
