"""The words of a command, with its placeholders filled in, and the folder in which it runs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from esper_ab.contracts.files_below import folder_below
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.trainer import OUT, SEED, TrainerValue, fill, placeholders

_SEEDS = 2**31  # a seed that every library accepts


def seed_at(path: RngPath) -> int:
    """Return the number at an address as a seed for any library: 0 … 2^31 - 1."""
    return path.key() % _SEEDS


def fresh_folder(root: Path, name: str) -> Path:
    """Make an empty folder `name` below `root`, deleting the files of an earlier attempt of the run."""
    folder = folder_below(root, name)
    shutil.rmtree(folder)
    return folder_below(root, name)


def names_its_folder(command: str) -> bool:
    """Whether a command says where its run's folder goes; one that does not runs in that folder."""
    return OUT in placeholders(command)


def folder_of(command: str, directory: str, out: Path) -> str:
    """Return the folder in which a command runs: the user's `directory`, unless it does not name its own."""
    return directory if names_its_folder(command) else str(out)


def search_path(command: str, directory: str) -> str:
    """Return the user's folder, for `python -m`, if a command runs in another one; else ""."""
    return "" if names_its_folder(command) else directory


def words_of(command: str, settings: Mapping[str, TrainerValue], seed: int, out: Path, directory: Path) -> list[str]:
    """Return the command's arguments with all placeholders filled in.

    `directory` is the user's folder. For a command that runs in its own, paths of files there become absolute.
    """
    words = fill(command, {**settings, SEED: seed, OUT: str(out)})
    if names_its_folder(command):
        return words
    modules = {at + 1 for at, word in enumerate(words) if word == "-m"}
    return [word if at in modules else _absolute(word, directory, program=at == 0) for at, word in enumerate(words)]


def _absolute(word: str, directory: Path, *, program: bool) -> str:
    """Return a word with the path of an existing file of the user's made absolute, also in --config=PATH."""
    head, equals, path = word.rpartition("=") if word.startswith("-") else ("", "", word)
    if not path or path.startswith("-") or (program and "/" not in path):
        return word
    try:
        exists = (directory / path).exists()
    except OSError:  # too long for a name
        exists = False
    return f"{head}{equals}{directory / path}" if exists else word
