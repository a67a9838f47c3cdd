"""Where worker processes find a function of the user's: its file, or a file into which its source is written."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from pathlib import Path

from esper_ab.api.function_source import source_with_globals
from esper_ab.contracts.errors import UsageError, refused
from esper_ab.contracts.files_below import make_folder, write_below
from esper_ab.contracts.unversioned import leave_unversioned
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import listed

FOLDER = "functions"  # below `output_dir`: files of functions that are in no file
_SHOWN_CHARS = 60
_HASH_CHARS = 12


def reference_of(function: object, output_dir: Path, caller: str) -> str:
    """Return FILE:NAME of a function; `caller`, for messages, is the function of ours that it was given to.

    The source of a function of a notebook, or one inside another function, is written to a file below `output_dir`.
    Raises UsageError, with one line, for anything that a new process could not call.
    """
    if not inspect.isfunction(function):
        raise UsageError(f"{caller}: {_no_function(function)}")
    name = function.__name__
    if name == "<lambda>":
        raise UsageError(
            f"{caller}: a lambda cannot be sent to other processes; define the function by def, with a name"
        )
    code = inspect.unwrap(function).__code__
    if enclosed_names := code.co_freevars:
        settings_words = "it a setting" if len(enclosed_names) == 1 else "them settings"
        raise UsageError(
            f"{caller}: {name} uses {listed(enclosed_names)} of the function around it, which cannot be sent "
            f"to other processes; make {settings_words} of the groups"
        )
    module = sys.modules.get(function.__module__)
    file = Path(getattr(module, "__file__", None) or "")
    typed = module is sys.modules["__main__"] and Path(code.co_filename).name != file.name  # in a notebook, after %run
    if getattr(module, name, None) is function and file.suffix == ".py" and not typed:
        return f"{file.resolve()}:{name}"
    return written_function(name, source_with_globals(function, caller), output_dir)


def written_function(name: str, text: str, output_dir: Path) -> str:
    """Write the source of a function to a file below `output_dir`, and return FILE:NAME of it."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]
    place = f"{FOLDER}/{digest}/{name}.py"
    try:
        make_folder(output_dir)
        write_below(output_dir, place, text.encode())
        leave_unversioned(output_dir / FOLDER)
    except OSError as error:
        raise refused(
            error, f"{output_dir / FOLDER} cannot be written: {error.strerror}; choose another output_dir"
        ) from None
    return f"{(output_dir / place).resolve()}:{name}"


def _no_function(argument: object) -> str:
    """Say what to give in place of an object that is no function."""
    if isinstance(argument, functools.partial):
        return "a functools.partial cannot be sent to other processes; give the function, and the values as settings"
    if inspect.ismethod(argument):
        return f"{argument.__name__} is a method; give a function, which makes its object itself"
    return (
        f"expected a function train(seed, …) that returns its outcome, not {visible_line(repr(argument), _SHOWN_CHARS)}"
    )
