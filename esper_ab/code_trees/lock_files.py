"""Files that fix the versions of packages, of which states of the code may have different ones."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import PurePosixPath

from esper_ab.code_trees.store import Store

_LOCK = re.compile(
    r"(uv|poetry|pdm|pixi|Pipfile)\.lock|pylock(\.[\w-]+)?\.toml|requirements[\w.-]*\.txt|"
    r"conda-lock\.ya?ml|environment\.ya?ml"
)


def lock_files(store: Store, commit: str, inside: str) -> dict[str, str]:
    """Return the sha256 of each lock file at the top of a commit and in the folder `inside`, by its path."""
    digests = {}
    for folder in dict.fromkeys(("", inside)):
        place = f"{commit}:{folder}"
        for name in os.fsdecode(store.git("ls-tree", "-z", "--name-only", place)).split("\0"):
            if _LOCK.fullmatch(name):
                path = str(PurePosixPath(folder, name))
                digests[path] = hashlib.sha256(store.git("cat-file", "blob", f"{commit}:{path}")).hexdigest()
    return digests
