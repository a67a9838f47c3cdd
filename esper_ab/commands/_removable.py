"""Find and remove files that an experiment directory no longer needs.

These are checkpoints, temporary files of killed processes, files of states of the code, and console output. Links are
not followed. The journal, policies, settings, reports and logs are always kept.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.answer_files import PAGE, SUMMARY, VERDICT
from esper_ab.contracts.checkpoint_files import is_name
from esper_ab.contracts.code_state import CODE_FOLDER, TREES
from esper_ab.contracts.files_below import remove_below, remove_empty_below
from esper_ab.contracts.run_files import CHECKPOINTS, POLICIES, REUSED
from esper_ab.contracts.shell_command import shell_command
from esper_ab.journal.fold import History
from esper_ab.journal.lock import Lock
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.readers.status import state_of

_OF_REPORTS = re.compile(rf"\.({'|'.join(map(re.escape, (SUMMARY, VERDICT, PAGE)))})\..+")  # report/build
_OF_TRACKERS = re.compile(r"\..+\.json\..+")  # trackers/state
_OF_WORKERS = re.compile(r"\..+\.pt\.\d+-\d+")  # write_below in contracts/files, for checkpoints and policies
_AT_WORK_S = 60.0  # keep newer ones: reports and trackers write without holding the directory
_DEPTH = 3  # path parts of a checkpoint below the folder: GROUP/SEED/MILESTONE.pt


@dataclass(frozen=True, kw_only=True)
class Removable:
    """The files of one experiment directory that can be removed."""

    files: tuple[Path, ...] = ()  # relative to the directory
    size_bytes: int = 0
    kept: str = ""  # why other files stay for now


def removable(experiment_dir: Path, history: History) -> Removable:
    """Find removable files in an experiment directory that no process holds."""
    state = state_of(history, held=False)
    folder = experiment_dir / CHECKPOINTS
    trees = experiment_dir / CODE_FOLDER / TREES
    files = [*_temporary(experiment_dir), *_checkpoints(folder, history), *files_below(trees)]
    kept_words = ""
    if state != "finished":
        kept_words = f"; it is {state}, so files that `{shell_command('resume', experiment_dir)}` needs were kept"
    elif (experiment_dir / CONSOLE_NAME).is_file():
        files.append(experiment_dir / CONSOLE_NAME)
    if state == "finished":
        files += _unused_policies(experiment_dir, history)
    if folder.is_symlink():
        kept_words += (
            f"; {folder} is a symbolic link and was skipped; clear {folder.readlink()} yourself, or remove the link"
        )
    return Removable(
        files=tuple(sorted(path.relative_to(experiment_dir) for path in files)),
        size_bytes=sum(path.lstat().st_size for path in files),
        kept=kept_words,
    )


def remove(experiment_dir: Path, unneeded_files: Removable) -> None:
    """Remove the files in `unneeded_files`; UsageError if a process now holds the experiment directory."""
    with closing(Lock(experiment_dir)):
        for file in unneeded_files.files:
            remove_below(experiment_dir, file)
        if any(file.parts[:2] == (CODE_FOLDER, TREES) for file in unneeded_files.files):
            from esper_ab.code_trees.trees import remove_trees  # most experiments have one state of the code

            remove_trees(experiment_dir)
        folders: set[Path] = set()
        for file in unneeded_files.files:
            folders |= {parent for parent in file.parents if CHECKPOINTS in parent.parts}
        for folder in sorted(folders, reverse=True):
            remove_empty_below(experiment_dir, folder)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files below `folder` in order; symbolic links, including `folder` itself, are not followed."""
    if folder.is_symlink():
        return
    for root, subfolders, names in os.walk(folder):
        subfolders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if _is_file(path):
                yield path


def _unused_policies(experiment_dir: Path, history: History) -> Iterator[Path]:
    """Yield the policies of kept runs that were offered and not reused."""
    used_files = {run.evaluation.policy_file for run in history.runs.values() if run.evaluation is not None}
    for path in files_below(experiment_dir / REUSED):
        if path.relative_to(experiment_dir).as_posix() not in used_files:
            yield path


def _temporary(experiment_dir: Path) -> Iterator[Path]:
    yield from _drafts(experiment_dir, _OF_REPORTS)
    tracking = experiment_dir / "tracking"
    if not tracking.is_symlink():
        yield from _drafts(tracking, _OF_TRACKERS)
    for name in (CHECKPOINTS, POLICIES):
        yield from (path for path in files_below(experiment_dir / name) if _OF_WORKERS.fullmatch(path.name))


def _drafts(folder: Path, name_pattern: re.Pattern[str]) -> Iterator[Path]:
    """Yield temporary files in `folder` that no process can still be writing."""
    for path in folder.glob(".*"):
        if name_pattern.fullmatch(path.name) and _is_file(path) and time.time() - path.stat().st_mtime > _AT_WORK_S:
            yield path


def _checkpoints(folder: Path, history: History) -> Iterator[Path]:
    """Yield checkpoints of complete runs only, because an unfinished run resumes from its checkpoints."""
    needed_folders = {folder / name for name, run in history.runs.items() if run.started and run.expected}
    for path in files_below(folder):
        is_checkpoint = len(path.relative_to(folder).parts) == _DEPTH and is_name(path.name)
        if is_checkpoint and path.parent not in needed_folders:
            yield path


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
