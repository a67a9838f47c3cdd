"""A tag of TensorBoard event files, found by the tag because the name of a file has the time in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from workers.kinds.trainer.outcome_sources import curve
from workers.kinds.trainer.outcome_sources.left import Left, shortened
from workers.kinds.trainer.outcome_sources.values import Values, joined

_EVENTS = "tfevents"  # in the name of an event file


def is_event_file(file: str) -> bool:
    """Whether a file is an event file, by its name."""
    return _EVENTS in PurePath(file).name


def read(key: str, output: Left) -> Values:
    """Return the values of a tag, or of FOLDER:TAG; ValueError if there is none, or if several folders have it.

    A writer that begins anew continues in another file of the same folder, so the files of a folder are one curve.
    """
    files = [file for file in output.files() if is_event_file(file)]
    if not files:
        raise ValueError(f"the script left no TensorBoard event file in {{out}}; it left {shortened(output.files())}")
    tag = key
    files_with_tag = [file for file in files if curve.has(file, tag, output)]
    if not files_with_tag and ":" in key:
        folder, _, tag = key.partition(":")
        files_with_tag = [file for file in _files_of_folder(files, folder) if curve.has(file, tag, output)]
    if not files_with_tag:
        return curve.read(files[-1], tag, output)  # says which tags there are
    folders = sorted({_folder(file) for file in files_with_tag})
    if len(folders) > 1:
        example = _shortest(folders[0], folders)
        raise ValueError(
            f"event files in {shortened(folders)} all have {tag}; say which folder counts, as in tb:{example}:{tag}"
        )
    return joined([curve.read(file, tag, output) for file in files_with_tag]).named(f"tb:{key}")


def _folder(file: str) -> str:
    return str(PurePath(file).parent)


def _files_of_folder(files: Sequence[str], folder: str) -> list[str]:
    """Return the files in folders whose path ends with `folder`."""
    end = PurePath(folder).parts
    return [file for file in files if PurePath(file).parent.parts[-len(end) :] == end or _folder(file) == folder]


def _shortest(folder: str, folders: Sequence[str]) -> str:
    """Return the fewest last parts of a folder's path that no other folder ends with."""
    parts = PurePath(folder).parts
    for count in range(1, len(parts)):
        end = parts[-count:]
        if sum(PurePath(other_folder).parts[-count:] == end for other_folder in folders) == 1:
            return "/".join(end)
    return folder
