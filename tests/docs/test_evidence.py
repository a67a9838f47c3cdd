"""Every number in docs/evidence comes from a command of this repository that anyone can run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "docs" / "evidence"
PAGES = [page.relative_to(EVIDENCE).as_posix() for page in sorted(EVIDENCE.rglob("*.md"))]
# To be written anew, or removed: their scripts are only in the history.
EXCEPTIONS = {
    "learning.md",
}
_COMMAND = re.compile(r"\b(?:[Ww]ritten|[Cc]hecked) by\s+`([^`]+)`")
_IN_HISTORY = re.compile(r"in the history|\bcommits?\s+`[0-9a-f]{7,}`")
_FILE = re.compile(r"(?<![\w/.-])(?:scripts|tests)/[\w./-]*\w")
_MODULE = re.compile(r"PYTHONPATH=tests python -m ([\w.]+)")


def problems(page: str, text: str) -> list[str]:
    """Return what is not of this repository in the text of a page."""
    found = [f"names a commit: {words}" for words in _IN_HISTORY.findall(text)]
    modules = [f"tests/{name.replace('.', '/')}.py" for name in _MODULE.findall(text)]
    found += [f"{file} does not exist" for file in (*_FILE.findall(text), *modules) if not (ROOT / file).exists()]
    command = _COMMAND.search("\n".join(text.splitlines()[:6]))
    if command is None and page != "README.md":
        found.append("names no command in the first lines")
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if page not in EXCEPTIONS])
def test_a_page_of_evidence_has_only_numbers_of_commands_that_exist(page):
    assert problems(page, (EVIDENCE / page).read_text(encoding="utf-8")) == []


def test_no_exception_is_left_without_need():
    assert {page for page in EXCEPTIONS & {*PAGES} if not problems(page, (EVIDENCE / page).read_text())} == set()


@pytest.mark.parametrize(
    "text",
    [
        "Written by `scripts/bench hosts` at commit `4a4b1138`.",
        "Written by `scripts/bench hosts`; the numbers are in the history.",
        "Written by `scripts/no_such_script`.",
        "Written by `PYTHONPATH=tests python -m simulation.no_such_module`.",
        "Written by `scripts/bench hosts`; `tests/no_such_test.py` checks it.",
        "The numbers of scripts/bench.",
    ],
)
def test_other_numbers_are_found(text):
    assert len(problems("page.md", text)) == 1
    assert problems("page.md", "Written by `scripts/bench hosts`.") == []
