"""Two functions as one, of which a setting says which is called: groups of an experiment share their trainer."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from esper_ab.api.function_reference import FOLDER, reference_of, written_function
from esper_ab.api.function_source import users_folders
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.settings.differences import WHICH_FUNCTION
from esper_ab.testing import calling


def as_one(caller: str, functions: Mapping[str, Callable[..., Any]], output_dir: Path) -> str:
    """Return FILE:NAME of a function, written below `output_dir`, that calls the one of `functions` that is chosen.

    UsageError, which names `caller`, for a function that other processes could not call.
    """
    places = {name: _place(caller, function, output_dir) for name, function in functions.items()}
    name = "_or_".join(place[-1] for place in places.values())
    text = "\n".join(
        [
            inspect.getsource(calling),
            "",
            f"sys.path += [folder for folder in {users_folders()!r} if folder not in sys.path]",
            f"FUNCTIONS = {places!r}",
            "",
            "",
            f"def {name}(seed, out, device, {WHICH_FUNCTION}, **settings):",
            f'    return call(FUNCTIONS[{WHICH_FUNCTION}], settings, {{"seed": seed, "out": out, "device": device}})',
            "",
        ]
    )
    return written_function(name, text, output_dir)


def _place(caller: str, function: Callable[..., Any], output_dir: Path) -> tuple[str, str, str, str]:
    """Return the module, the file, the file's sha256 and the name of a function."""
    file, _, name = reference_of(function, output_dir, caller).rpartition(":")
    if function.__module__ == "__main__":
        raise UsageError(
            f"{caller}: {name} is in the script that runs, which two functions cannot share with their comparison; put "
            "both into a module"
        )
    is_written = Path(file).is_relative_to(output_dir.resolve() / FOLDER)
    module_name = "" if is_written else getattr(sys.modules.get(function.__module__), "__name__", "")
    return module_name, file, hashlib.sha256(read_regular(Path(file))).hexdigest(), name
