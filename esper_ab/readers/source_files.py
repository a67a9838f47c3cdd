"""Files that the user named, and those in folders that he named, each with its format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.wording import counted
from esper_ab.formats.binary_files import refuse_binary
from esper_ab.formats.csv_table import read_table
from esper_ab.formats.known import Format, format_of, format_words
from esper_ab.readers.joint_directory import is_experiment
from esper_ab.readers.not_outcomes import is_log_or_description, may_have_outcomes

_MOST_FILES = 10_000  # in all folders, of any format
_DEEPEST = 12  # folders within each other
_TABLES = (".csv", ".tsv")
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class SourceFile:
    """A file that can be read."""

    path: Path  # as the user named it, or below a folder as the user named that
    format: Format
    in_folder: bool = False  # found in a folder, and not named by the user


def find_files(paths: Sequence[Path]) -> tuple[list[SourceFile], tuple[str, ...]]:
    """Return the files to read, those of a folder in the order of their names, and notes on what is not read.

    In folders, hidden files, links, logs, descriptions and files of unknown formats are left out. A file with several
    paths is read once. Raises UsageError, with an example, for a named file of unknown format and for folders without
    any file that can be read; OSError for a path that cannot be read.
    """
    known_files: dict[Path, SourceFile] = {}  # by their paths without links
    unread_files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            known_files.setdefault(path.resolve(), _named_file(path))
            continue
        if is_experiment(path):
            raise UsageError(
                f"{path} is an experiment directory, whose runs are judged by their own plan, without other paths: "
                f"`{shell_command('judge', path)}`"
            )
        for file in _files_below(path):
            form = None if is_log_or_description(file.name) else format_of(file)
            if form is None:
                unread_files.append(file)
            else:
                known_files.setdefault(file.resolve(), SourceFile(file, form, in_folder=True))
    if not known_files:
        raise UsageError(_nothing_found(paths, unread_files))
    if not unread_files:
        return list(known_files.values()), ()
    note = (
        "Not read, because they are logs or descriptions, or their formats are unknown: "
        f"{counted(len(unread_files), 'file')}, such as {unread_files[0]}."
    )
    return list(known_files.values()), (note,)


def _nothing_found(paths: Sequence[Path], unread_files: Sequence[Path]) -> str:
    """Return the message that no file in the folders can be read."""
    folders = ", ".join(map(str, paths))
    if not unread_files:
        return f"{folders}: no files; {_what_is_read()}"
    known_by_name = [file for file in unread_files if is_log_or_description(file.name)]
    name_words = ""
    if known_by_name:
        name_words = f" (logs and descriptions, such as {known_by_name[0]}, are read only if you name them)"
    return f"{folders}: none of {counted(len(unread_files), 'file')} has a known format{name_words}; {_what_is_read()}"


def _named_file(path: Path) -> SourceFile:
    """Return a file that the user named; UsageError, which says why, if it cannot be read."""
    form = format_of(path)
    if form is not None:
        return SourceFile(path, form)
    if path.suffix.lower() in _TABLES or not path.stat().st_size:
        read_table(path)  # says what is wrong with the table
    with open_to_read(path) as file:
        refuse_binary(path, file.read(_HEAD_BYTES))
    raise UsageError(f"{path} has an unknown format; {_what_is_read()}")


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder that may have outcomes; hidden ones and links are left out."""
    count = 0
    waiting_folders = [(folder, 1)]
    while waiting_folders:
        folder_below, depth = waiting_folders.pop()
        folders = []
        entries = {entry.name: entry for entry in os.scandir(folder_below) if not entry.name.startswith(".")}
        for name in may_have_outcomes(folder_below.resolve().name, sorted(entries)):
            entry = entries[name]
            count += 1
            if count > _MOST_FILES:
                raise UsageError(f"{folder} has more than {_MOST_FILES} files; name the folders or files of the runs")
            if entry.is_dir(follow_symlinks=False):
                _refuse_experiment(folder_below, Path(entry.path))
                folders.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
        if folders and depth == _DEEPEST:
            raise UsageError(f"{folder} has more than {_DEEPEST} folders within each other; name those of the runs")
        waiting_folders += [(path, depth + 1) for path in reversed(folders)]


def _refuse_experiment(parent: Path, folder: Path) -> None:
    """Raise UsageError if a folder below one that the user named is an experiment directory."""
    if is_experiment(folder):
        raise UsageError(
            f"{parent} has experiment directories, each with a plan of its own: name one, as in "
            f"`{shell_command('judge', folder)}`; `{shell_command('list', parent)}` lists all, and "
            f"`{shell_command('compare', 'EXPERIMENT', 'EXPERIMENT')}` compares several"
        )


def _what_is_read() -> str:
    return (
        f"judge reads {format_words()}; the simplest is a CSV file with the header group,seed,outcome and a row per "
        "run, such as new,0,71.25"
    )
