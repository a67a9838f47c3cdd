"""The folders of docs: few pages for users; evidence and internals apart."""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_PAGES = 20


def test_the_number_of_user_pages_is_limited():
    assert 0 < len(list(DOCS.glob("*.md"))) <= MOST_PAGES


def test_the_docs_folder_has_only_the_listed_folders():
    assert {path.name for path in DOCS.iterdir() if path.is_dir()} == {"evidence", "internals", "examples"}
