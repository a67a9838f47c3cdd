"""The files that a command names, whose contents its runs depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from esper_ab.contracts.trainer import TrainerValue, fill, placeholders


def named_files(command: str, directory: str, groups: Iterable[Mapping[str, TrainerValue]] = ({},)) -> tuple[str, ...]:
    """Return the files below the command's folder that the command names under any group's settings.

    A word names a file by itself, after an equals sign (`--config=FILE`) or as a module (`-m train`). The program
    counts only if given as a path, because a bare name is looked up on PATH.
    """
    root = Path(directory).resolve()
    file_names = list[str]()
    for settings in groups:
        filled_values = {name: settings.get(name, f"{{{name}}}") for name in placeholders(command)}
        words = fill(command, filled_values)
        if "/" in words[0]:
            file_names.append(words[0])
        for previous_word, word in pairwise(words):
            file_names += _possible_files(previous_word, word)
    files = dict[str, None]()  # in order, each once
    for name in file_names:
        path = (root / name).resolve()
        if "{" not in name and path.is_file() and path.is_relative_to(root):
            files[path.relative_to(root).as_posix()] = None
    return tuple(files)


def _possible_files(previous_word: str, word: str) -> Iterator[str]:
    """Yield the files that `word`, which follows `previous_word`, may name."""
    yield word
    value = word.partition("=")[2]
    if value:
        yield value
    if previous_word == "-m":
        module = word.replace(".", "/")
        yield f"{module}.py"
        yield f"{module}/__main__.py"
