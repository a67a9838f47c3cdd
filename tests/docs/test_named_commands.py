"""Every script and module that a page names exists now, or existed at a commit that the page names."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")])
OURS = ("esper_ab", "workers")


def scripts_named(text: str) -> set[str]:
    """Paths below the folder scripts of this repository; `tests/scripts` and `venv/scripts` are others."""
    return {name.rstrip(".") for name in re.findall(r"(?<![\w/.-])scripts/[\w./]*\w", text)}


def modules_run(text: str) -> set[str]:
    """Modules of ours that are run with `python -m`."""
    named_modules = {name.rstrip(".") for name in re.findall(r"python[\d.]* -m ([\w.]+)", text)}
    return {name for name in named_modules if name.partition(".")[0] in OURS}


def commits_named(text: str) -> set[str]:
    return set(re.findall(r"commits?\s+`([0-9a-f]{8})`", text))


def had(commit: str, path: str) -> bool:
    """True if the commit has the file, or if this clone lacks the commit."""
    git = ["git", "-C", str(ROOT), "cat-file", "-e"]
    if subprocess.run([*git, commit], capture_output=True, check=False).returncode:
        return True
    return not subprocess.run([*git, f"{commit}:{path}"], capture_output=True, check=False).returncode


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_scripts_and_modules_named_by_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    missing_names = {name for name in scripts_named(text) if not (ROOT / name).exists()}
    commits = commits_named(text)
    assert {name for name in missing_names if not any(had(commit, name) for commit in commits)} == set()
    assert {name for name in modules_run(text) if importlib.util.find_spec(name) is None} == set()


def test_scripts_modules_and_commits_are_extracted_from_text():
    text = "`scripts/bench hosts`, `scripts/peers/reference.py`. tests/scripts/x.py; python -m esper_ab.launch."
    assert scripts_named(text) == {"scripts/bench", "scripts/peers/reference.py"}
    assert modules_run(text + " python3 -m venv x") == {"esper_ab.launch"}
    assert commits_named("at\ncommit `e9485264`") == {"e9485264"}
