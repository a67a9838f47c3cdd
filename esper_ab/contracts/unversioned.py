"""Folders that are ours alone are no part of the user's code: a .gitignore in each, as in .pytest_cache, tells git so.

States of the code have the files that git would add, so what one command wrote is in no state that another one seals.
"""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.files_below import write_below

GITIGNORE = ".gitignore"
_EVERYTHING = b"# Written by esper_ab: results are no code.\n*\n"


def leave_unversioned(folder: Path) -> None:
    """Let git ignore everything in a folder that is ours alone, unless it has a .gitignore; raises OSError."""
    if not (folder / GITIGNORE).exists():
        write_below(folder, GITIGNORE, _EVERYTHING)
