"""What is in a folder of kept runs, and what can be removed: damaged files, drafts, and runs beyond a size."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import remove_below
from esper_ab.contracts.wording import counted
from esper_ab.kept_runs.folder import (
    StoredFile,
    abandoned_drafts,
    evict,
    is_folder_of_runs,
    locked,
    read_run,
    stored_files,
)


class FolderContents(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of kept runs, after a check or a removal."""

    folder: str
    runs: int
    bytes: int
    experiments: dict[str, int]  # number of runs by the name of the experiment that trained them
    last_used: str  # ISO 8601; "" if there are no runs
    damaged: tuple[str, ...]  # files that are no intact runs, relative to the folder
    removed: tuple[str, ...] = ()
    removed_bytes: int = 0

    def __str__(self) -> str:
        words = [f"{counted(self.runs, 'kept run')} of {counted(len(self.experiments), 'experiment')}"]
        words.append(_size(self.bytes))
        if self.last_used:
            words.append(f"last used {self.last_used[:10]}")
        if self.damaged:
            words.append(f"{counted(len(self.damaged), 'damaged file')}")
        if self.removed:
            words.append(f"{counted(len(self.removed), 'file')} removed ({_size(self.removed_bytes)})")
        return f"{self.folder}: {', '.join(words)}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:.0f} kB"


def check_folder(folder: Path) -> FolderContents:
    """Read every run in the folder; UsageError if there is no such folder, or another one. Nothing is changed."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder of kept runs")
    if not is_folder_of_runs(folder):
        raise UsageError(f"{folder}: there are no kept runs in it; name the folder that --references had")
    experiments: dict[str, int] = {}
    damaged_files = []
    intact_files: list[StoredFile] = []
    for file in stored_files(folder):
        stored_run = read_run(file.path)
        if stored_run is None:
            damaged_files.append(str(file.path.relative_to(folder)))
            continue
        intact_files.append(file)
        source = stored_run[0].source
        experiments[source] = experiments.get(source, 0) + 1
    last_used = ""
    if intact_files:
        last_used = datetime.fromtimestamp(intact_files[-1].used_at, UTC).isoformat(timespec="seconds")
    return FolderContents(
        folder=str(folder),
        runs=len(intact_files),
        bytes=sum(file.size_bytes for file in intact_files),
        experiments=experiments,
        last_used=last_used,
        damaged=tuple(damaged_files),
    )


def tidy_folder(folder: Path, limit_bytes: int | None) -> FolderContents:
    """Remove damaged files, drafts of killed writers and, with a limit, the runs used longest ago beyond it.

    Raises UsageError as `check_folder` does, and OSError if the folder cannot be changed.
    """
    contents = check_folder(folder)
    removed_names = []
    removed_bytes = 0
    with locked(folder):
        drafts = [path.relative_to(folder) for path in abandoned_drafts(folder)]
        damaged_files = [Path(name) for name in contents.damaged if read_run(folder / name) is None]  # not rewritten
        for name in (*drafts, *damaged_files):
            path = folder / name
            if path.exists():
                removed_bytes += path.lstat().st_size
                remove_below(folder, name)
                removed_names.append(str(name))
    for file in evict(folder, limit_bytes) if limit_bytes is not None else []:
        removed_names.append(str(file.path.relative_to(folder)))
        removed_bytes += file.size_bytes
    return msgspec.structs.replace(check_folder(folder), removed=tuple(removed_names), removed_bytes=removed_bytes)
