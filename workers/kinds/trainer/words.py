"""The words of a command, with its placeholders filled in, and the folder in which it runs."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.files_below import folder_below
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.trainer import (
    DEVICE,
    IN_THE_FOLDER,
    NAME,
    OUT,
    OUT_FILE,
    RESUME,
    SEED,
    TrainerValue,
    fill_word,
    placeholders,
)

_SEEDS = 2**31  # a seed that every library accepts
_RESULT = "result.json"  # below {out}: {out_file}


def seed_at(path: RngPath) -> int:
    """Return the number at an address as a seed for any library: 0 … 2^31 - 1."""
    return path.key() % _SEEDS


def fresh_folder(root: Path, name: str) -> Path:
    """Make an empty folder `name` below `root`, deleting the files of an earlier attempt of the run."""
    folder = folder_below(root, name)
    shutil.rmtree(folder)
    return folder_below(root, name)


def device_word(pins: Mapping[str, str]) -> str:
    """Return torch's name of a run's device, of which the run sees no others: "cpu", "cuda:0"; of several, "cuda"."""
    gpus = list(filter(None, pins["CUDA_VISIBLE_DEVICES"].split(",")))
    if not gpus:
        return "cpu"
    return "cuda:0" if len(gpus) == 1 else "cuda"


@dataclass(frozen=True)
class CommandLine:
    """A command, to be filled in for one run."""

    command: str
    directory: Path  # the user's folder
    out: Path  # the run's own folder

    @property
    def names_its_folder(self) -> bool:
        """Whether the command says where its run's files go; one that does not runs in the run's folder."""
        return any(name in IN_THE_FOLDER for name in placeholders(self.command))

    @property
    def folder(self) -> str:
        """The folder in which the command runs."""
        return str(self.directory if self.names_its_folder else self.out)

    @property
    def search_path(self) -> str:
        """The user's folder, for `python -m`, if the command runs in another one; else ""."""
        return "" if self.names_its_folder else str(self.directory)

    def own_values(self, seed: int, name: str, device: str) -> dict[str, TrainerValue]:
        """Return what every run fills in itself, except {port}."""
        return {
            SEED: seed,
            OUT: str(self.out),
            OUT_FILE: str(self.out / _RESULT),
            NAME: name,
            DEVICE: device,
            RESUME: str(self.out),
        }

    def words(self, values: Mapping[str, TrainerValue]) -> list[str]:
        """Return the command's arguments with all placeholders filled in by `values`.

        A word with {resume} is left out if it names nothing that an earlier attempt of the run has left, together with
        the flag before it. For a command that runs in its own folder, paths of files in the user's become absolute.
        """
        written_words = self._omit_empty_resume(values)
        filled_words = [fill_word(word, values) for word in written_words]
        if self.names_its_folder:
            return filled_words
        modules = {place + 1 for place, word in enumerate(written_words) if word == "-m"}
        return [
            word
            if place in modules or _is_value(written_words[place])
            else _absolute(word, self.directory, program=place == 0)
            for place, word in enumerate(filled_words)
        ]

    def can_resume(self, values: Mapping[str, TrainerValue]) -> bool:
        """Whether the run's folder has something that a word of the command with {resume} names."""
        return any(_is_left(word, values) for word in shlex.split(self.command) if RESUME in placeholders(word))

    def _omit_empty_resume(self, values: Mapping[str, TrainerValue]) -> list[str]:
        kept_words = list[str]()
        for word in shlex.split(self.command):
            if RESUME in placeholders(word) and not _is_left(word, values):
                if word.startswith(f"{{{RESUME}}}") and kept_words and kept_words[-1].startswith("-"):
                    kept_words.pop()
            else:
                kept_words.append(word)
        return kept_words


def _is_left(word: str, values: Mapping[str, TrainerValue]) -> bool:
    """Whether the file or the folder that a word with {resume} names exists, and is not an empty folder."""
    resume = f"{{{RESUME}}}"
    path = Path(fill_word(resume + word.partition(resume)[2], values))
    if path.is_dir():
        return any(path.iterdir())
    return path.exists()


def _is_value(word: str) -> bool:
    """Whether a word of the command is the value of a setting, as in {config} or --config={config}."""
    value = word.rpartition("=")[2] if word.startswith("-") else word
    return len(placeholders(value)) == 1 and value == f"{{{placeholders(value)[0]}}}"


def _absolute(word: str, directory: Path, *, program: bool) -> str:
    """Return a word with the path of an existing file of the user's made absolute, also in --config=PATH."""
    head, equals_sign, path = word.rpartition("=") if word.startswith("-") else ("", "", word)
    if not path or path.startswith("-") or (program and "/" not in path):
        return word
    try:
        exists = (directory / path).exists()
    except OSError:  # too long for a name
        exists = False
    return f"{head}{equals_sign}{directory / path}" if exists else word
