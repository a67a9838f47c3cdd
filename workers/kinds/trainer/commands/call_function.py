"""`python -m workers.kinds.trainer.commands.call_function FOLDER`: calls a user's function once, in this process.

FOLDER/call.json is a Call. The answer, a Called, is written to FOLDER/returned.json; the exit status is 1 if it has an
error. The user's code may have a package `workers` of its own, so ours is forgotten before the code is loaded.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType

import msgspec

from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.wording import did_you_mean
from workers.kinds.trainer.code_tree import files_of
from workers.kinds.trainer.function_loading import EndOfLoading, guarded, loaded, local_files, located
from workers.kinds.trainer.function_messages import ORDER, RETURNED, Call, Called
from workers.kinds.trainer.function_points import read_points
from workers.kinds.trainer.function_settings import read_settings
from workers.user_code.state_of_code import enter

_decode = msgspec.json.Decoder(Call).decode


def main(folder: Path) -> int:
    call = _decode(read_regular(folder / ORDER))
    for name in [name for name in sys.modules if name.partition(".")[0] == "workers"]:
        del sys.modules[name]
    try:
        answer = answer_to(call)
    except ValueError as error:
        answer = Called(error=str(error))
        sys.stderr.write(f"{error}\n")
    write_below(folder, RETURNED, msgspec.json.encode(answer))
    return 1 if answer.error else 0


def answer_to(call: Call) -> Called:
    """Load and call the function; ValueError, with one line, if it cannot be called or returns no number."""
    place, _, name = call.reference.rpartition(":")
    if call.tree is not None:
        files = files_of(call.tree, Path(call.root))
        enter(files.folder, files.module_folders, files.moved)
    source = str(Path(call.directory) / "src")
    if source not in sys.path:
        sys.path.append(source)
    root, file = located(place, call.files)
    package = sys.modules["esper_ab"]
    vars(package)["compare_training"] = _end_loading
    module = loaded(root, file, Path(call.kept or root), call.files)
    vars(package)["compare_training"] = _refuse
    function = getattr(module, name, None)
    if not inspect.isfunction(function):
        raise ValueError(f"no function {name!r} in {file.name}; {did_you_mean(name, _functions_of(module))}")
    settings = {group: read_settings(function, values) for group, values in call.groups.items()}
    own_settings = read_settings(function, {**call.groups[call.group], **call.more})
    parameters = inspect.signature(function).parameters
    filled_settings = {key: value for key, value in call.filled.items() if key in parameters}
    returned_value = guarded(
        f"{name} failed", root / file, lambda: function(**own_settings, **filled_settings, seed=call.seed)
    )
    points = read_points(name, returned_value)
    return Called(
        points=tuple({key: repr(value) for key, value in point.items()} for point in points),
        settings=settings,
        root=str(root),
        files=tuple(local_files(root, file)),
    )


def _functions_of(module: ModuleType) -> list[str]:
    """Return the names of the public functions that the module defines, without those that it imports."""
    functions = []
    for name, value in vars(module).items():
        defined_here = inspect.isfunction(value) and value.__module__ == module.__name__
        if defined_here and not name.startswith("_"):
            functions.append(name)
    return functions


def _end_loading(*_: object, **__: object) -> None:
    """Stand for `compare_training` while the user's file is loaded, which calls it again if it has no main block."""
    raise EndOfLoading


def _refuse(*_: object, **__: object) -> None:
    """Stand for `compare_training` while the function is called."""
    raise ValueError("compare_training is called inside a function that it compares")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
