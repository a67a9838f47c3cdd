"""Source and checksum of a downloadable archive, and the folder where its files are kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A gzipped tar on the web, by size and checksum, and the files of it that the task reads."""

    url: str
    size_bytes: int
    sha256: str
    members: tuple[str, ...]  # paths inside the archive, kept as they are below the data folder


def data_folder(data_dir: str) -> Path:
    """Return the folder of a task's files: `data_dir`, or the user's cache when it is empty."""
    if data_dir:
        return Path(data_dir).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "esper_ab"
