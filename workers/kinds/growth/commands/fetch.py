"""`python -m workers.kinds.growth.commands.fetch`: download and verify the files of a task. Imports no torch.

[task, folder] is on stdin.

The update is atomic: the archive is downloaded under a temporary name, its size and sha256 are checked, and the listed
members are unpacked to a temporary folder and renamed into place.
"""

from __future__ import annotations

import hashlib
import sys
import tarfile
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from workers.commands.answering import answer_stdin
from workers.kinds.growth.catalogues import task_named
from workers.kinds.growth.datasets.task import Archive, data_folder

_TIMEOUT_S = 30.0  # per read, not for the whole download
_CHUNK_BYTES = 1 << 20


def _download(archive: Archive, target: Path) -> None:
    """Download `archive` to `target` and verify it; ValueError if the download fails or is not the published file."""
    digest = hashlib.sha256()
    size = 0
    try:
        with urllib.request.urlopen(archive.url, timeout=_TIMEOUT_S) as source, target.open("wb") as file:
            while piece := source.read(_CHUNK_BYTES):
                size += len(piece)
                if size > archive.size_bytes:
                    break
                digest.update(piece)
                file.write(piece)
    except OSError as error:
        remedy = "without a network, unpack the archive elsewhere and pass its folder with --data-dir"
        raise ValueError(f"cannot download {archive.url}: {error}; {remedy}") from None
    if size != archive.size_bytes or digest.hexdigest() != archive.sha256:
        received_size = f"more than {archive.size_bytes}" if size > archive.size_bytes else f"{size}"
        raise ValueError(
            f"{archive.url} returned {received_size} bytes, not the published {archive.size_bytes}, or has a wrong "
            "checksum; the download was discarded; try again"
        )


def _unpack(archive: Archive, archive_file: Path, folder: Path) -> None:
    try:
        with tarfile.open(archive_file, "r:gz") as tar:
            for name in archive.members:
                tar.extract(name, archive_file.parent, filter="data")
    except (KeyError, tarfile.TarError) as error:
        raise ValueError(f"{archive.url} is not the expected archive: {error}") from None
    for name in archive.members:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (archive_file.parent / name).replace(folder / name)


def fetch(archive: Archive, folder: Path) -> None:
    """Download `archive` and put its members below `folder`.

    Raises ValueError if the download fails, and OSError if the folder is not writable.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        archive_file = Path(scratch) / "archive.tar.gz"
        _download(archive, archive_file)
        _unpack(archive, archive_file, folder)


def fetched(request: tuple[str, str]) -> str:
    """Fetch a task's files if the task has any; return a sentence on the result."""
    name, data_dir = request
    task = task_named(name)
    if task.archive is None:
        return f"{name} needs no download"
    folder = data_folder(data_dir)
    fetch(task.archive, folder)
    return f"{name} is in {folder}"


if __name__ == "__main__":
    sys.exit(answer_stdin(fetched, msgspec.json.Decoder(tuple[str, str])))
