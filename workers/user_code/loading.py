"""Loads a user's code with its local imports, hashes the files, and resolves what the code declares.

Every error is a one-line ValueError that names the fault and begins with `what`, which is the caller's name for the
code.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import FieldInfo

from esper_ab.contracts.errors import USER_FAULTS, CodeChanged, UserCodeFailed
from esper_ab.contracts.files_below import folder_below
from esper_ab.contracts.machine import UserReward
from esper_ab.contracts.source_files import copy_files, source_sha256
from esper_ab.contracts.worker_order import RewardCode
from workers.arrays import Floats
from workers.user_code import late_imports
from workers.user_code.late_imports import without_working_directory
from workers.user_code.state_of_code import first_folders

Load = Callable[[str, str], ModuleType]  # (purpose, reference) -> the module that holds the function
_NEVER_FORGOTTEN = ("__main__", "esper_ab", "workers")
_LOADING = threading.Lock()  # runs may be threads of one process, which share its module table
_BESIDE: dict[ModuleType, dict[str, ModuleType]] = {}  # loaded module -> the modules forgotten with it, perhaps itself


@dataclass(frozen=True, kw_only=True)
class UserCode:
    """An executed user module, and the files it was made of."""

    module: ModuleType
    root: Path  # folder from which its imports are resolved
    files: tuple[str, ...]  # relative to `root`: its own, then those it imported from there; empty without a source
    sha256: str  # of all files; "" without a source


def load(subject: str, place: str) -> UserCode:
    """Execute the file, or import the installed module, named by `place`; every error message begins with `subject`."""
    if not place.endswith(".py"):
        module = load_module(subject, place)
        file = _file(module)
        if file is None:
            return _make_user_code(module, Path(), [])
        return _make_user_code(module, file.parent, [file])
    path = Path(place).resolve()
    if not path.is_file():
        raise ValueError(f"{subject}: no file {str(path)!r}")
    root = _root(path)
    with _importable(root, instead_of=root) as imported_modules:
        module = _execute(subject, path, root, path)
    _keep(module, imported_modules, [root])
    files = {_file(neighbour) for neighbour in imported_modules.values()} - {None, path}
    return _make_user_code(module, root, [path, *sorted(filter(None, files))])


def load_copy(subject: str, place: str, folder: Path, file: str) -> UserCode:
    """Execute `file`, the copy of `place` in `folder`; the folder holds only copies of that file and of its imports.

    A file outside any package gets the original's `__file__`, so that it finds data next to the original.
    """
    original_path = Path(place)
    folder = folder.resolve()
    root = original_path.parents[len(Path(file).parts) - 1]
    with _importable(folder, instead_of=root) as imported_modules:
        module = _execute(subject, folder / file, folder, original_path)
    _keep(module, imported_modules, [folder, root.resolve()])
    return _make_user_code(module, folder, _copied(folder))


def _keep(module: ModuleType, imported_modules: dict[str, ModuleType], folders: Sequence[Path]) -> None:
    """Remember the modules that were imported with `module`, for `known` and for imports while it runs."""
    _BESIDE[module] = imported_modules
    late_imports.register(module, imported_modules, folders)


def load_planned(subject: str, code: RewardCode, experiment_dir: Path) -> ModuleType:
    """Execute code as it was at planning time: the copy in `experiment_dir`, or the installed module.

    Raises ValueError if this fails, or if the code has changed since planning.
    """
    place = code.reference.rpartition(":")[0]
    folder = experiment_dir / code.folder if code.folder else None
    place_words = f"its copy in {folder}" if folder else f"module {place!r}"
    change_error = CodeChanged(
        f"{subject}: {place_words} was changed since the experiment was planned; put it back, then resume"
    )
    if folder:
        files = [path.relative_to(folder).as_posix() for path in _copied(folder)]
        if source_sha256(folder, files) != code.sha256:
            raise change_error  # before anything of it is executed
    loaded_code = load_copy(subject, place, folder, code.file) if folder else load(subject, place)
    if loaded_code.sha256 != code.sha256:
        raise change_error
    return loaded_code.module


def as_it_is(subject: str, reference: str) -> ModuleType:
    """Load a user's code in its current state."""
    return load(subject, reference.rpartition(":")[0]).module


def as_planned(codes: Iterable[RewardCode], folder: Path) -> Load:
    """Return a loader that uses the copies made at planning time below `folder`, or current code if there is no copy.

    The loader raises ValueError if a copy, or an installed module without a copy, has changed since planning.
    """
    by_reference = {code.reference: code for code in codes}

    def load_planned_code(subject: str, reference: str) -> ModuleType:
        code = by_reference.get(reference)
        if code:
            return load_planned(subject, code, folder)
        return as_it_is(subject, reference)

    return load_planned_code


def copied(subject: str, reference: str, folder: Path, name: str) -> tuple[UserReward, RewardCode]:
    """Load a user's code and, as a plan does, copy its file and local imports to `name` below `folder`.

    Return the description of the code and the reference to its copy. Installed modules are not copied.
    """
    place = reference.rpartition(":")[0]
    code = load(subject, place)
    files = code.files if place.endswith(".py") else ()
    if files:
        copy_files(code.root, files, folder_below(folder, name))
    description = UserReward(reference=reference, sha256=code.sha256, problem="", root=str(code.root), files=files)
    if files:
        copy = RewardCode(reference=reference, folder=name, file=files[0], sha256=code.sha256)
    else:
        copy = RewardCode(reference=reference, folder="", file="", sha256=code.sha256)
    return description, copy


@contextmanager
def known(module: ModuleType) -> Iterator[None]:
    """Inside this context, keep a loaded module, and the modules that it imported from its folder, in `sys.modules`.

    Names in annotations are looked up in `sys.modules` long after the code was executed.
    """
    neighbours = _BESIDE.get(module, {})
    with _LOADING:
        modules_before = {name: sys.modules[name] for name in neighbours if name in sys.modules}
        sys.modules.update(neighbours)
        try:
            yield
        finally:
            for name in neighbours:
                sys.modules.pop(name, None)
            sys.modules.update(modules_before)


def _copied(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def one_line(error: BaseException) -> str:
    """Return the error's type and message in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def line_of(error: BaseException, function: Callable[..., object]) -> str:
    """Return the line of `function`'s file that raised the error, as " (mine.py, line 7)"; "" if no line did."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    file = code.co_filename
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if not file or not lines:
        return ""
    return f" ({Path(file).name}, line {lines[-1]})"


def function_at(subject: str, reference: str, load: Load, *forms: str) -> tuple[ModuleType, Callable[..., Any]]:
    """Return the module and function named by `reference`, which has the form `path.py:function`.

    Raises ValueError unless the function accepts the arguments in one of `forms`, such as "(facts, settings)".
    """
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise ValueError(f"{subject}: expected path/to/file.py:function or module:function")
    module = load(subject, reference)
    return module, function_of(subject, module, name, *forms)


def function_of(subject: str, module: ModuleType, name: str, *forms: str) -> Callable[..., Any]:
    """Return a user's function; ValueError unless it accepts one of `forms`, such as "(facts, settings)"."""
    function: Any = getattr(module, name, None)
    if not callable(function):
        members = inspect.getmembers(module, lambda member: inspect.isfunction(member) or inspect.isclass(member))
        own_names = [key for key, member in members if member.__module__ == module.__name__ and not key.startswith("_")]
        raise ValueError(f"{subject}: no function {name!r}; available: {', '.join(own_names) or 'none'}")
    if not any(_takes(function, form.strip("()").split()) for form in forms):
        raise ValueError(f"{subject}: {name} must accept the arguments {' or '.join(forms)}")
    return function  # type: ignore[no-any-return]


def _takes(function: Callable[..., object], arguments: Sequence[str]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def numbers(subject: str, function: Callable[..., Any], arguments: tuple[Any, ...], shape: tuple[int, ...]) -> Floats:
    """Call a user's function; UserCodeFailed unless it returns numbers of this shape."""
    try:
        values = np.asarray(function(*arguments))
    except USER_FAULTS as error:
        raise UserCodeFailed(f"{subject} failed: {one_line(error)}{line_of(error, function)}") from error
    if values.shape != shape or values.dtype.kind not in "fiub":
        raise UserCodeFailed(f"{subject} returned shape {values.shape} {values.dtype}, not {shape} float64")
    return values.astype(np.float64)  # a copy: the function may write into its array at the next step


def _make_user_code(module: ModuleType, root: Path, paths: list[Path]) -> UserCode:
    files = tuple(path.relative_to(root).as_posix() for path in paths)
    sha256 = source_sha256(root, files) if files else ""
    return UserCode(module=module, root=root, files=files, sha256=sha256)


def _root(path: Path) -> Path:
    """Return the folder from which a file's imports are resolved: its own or the parent of its outermost package."""
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return root


def _execute(subject: str, path: Path, root: Path, file_name: Path) -> ModuleType:
    """Execute a file as a module of its package, or on its own with `file_name` as its `__file__`."""
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    in_package = path.parent != root
    if in_package and _belongs_to_package(root, name):
        return load_module(subject, name)
    return _load_standalone(subject, path, file_name)


def _belongs_to_package(root: Path, name: str) -> bool:
    """Return whether module `name` belongs to the package in `root`; an installed namesake takes precedence."""
    top = name.partition(".")[0]
    spec = importlib.util.find_spec(top)
    return spec is not None and spec.origin == str(root / top / "__init__.py")


@contextmanager
def _importable(root: Path, instead_of: Path) -> Iterator[dict[str, ModuleType]]:
    """Inside this context, make the files in `root` importable; on exit, move them to the yielded table.

    They are unloaded because other code may have a module of the same name elsewhere. `root` comes after everything
    installed and before the working directory. Modules in `instead_of` are hidden, including modules imported from
    there earlier.
    """
    imported_modules: dict[str, ModuleType] = {}
    with _LOADING:
        late_imports.forget()
        path = list(sys.path)
        bytecode = sys.dont_write_bytecode
        modules_before = dict(sys.modules)
        for name in _list_modules_below(instead_of, modules_before):
            del sys.modules[name]
        visible_entries = [entry for entry in path if Path(entry).resolve() != instead_of]
        installed_entries = without_working_directory(visible_entries)
        working_directory = [entry for entry in visible_entries if entry not in installed_entries]
        sys.path[:] = [*first_folders(), *installed_entries, str(root), *working_directory]
        sys.dont_write_bytecode = True  # keep the user's folder, or a hashed copy, unchanged
        importlib.invalidate_caches()
        try:
            yield imported_modules
        finally:
            new_modules = {
                name: module for name, module in list(sys.modules.items()) if modules_before.get(name) is not module
            }
            imported_modules.update({name: sys.modules.pop(name) for name in _list_modules_below(root, new_modules)})
            sys.modules.update({name: module for name, module in modules_before.items() if name not in sys.modules})
            sys.path[:] = path
            sys.dont_write_bytecode = bytecode
            importlib.invalidate_caches()


def _list_modules_below(root: Path, modules: Mapping[str, ModuleType]) -> list[str]:
    """Return names of the `modules` found in `root`, but not in a folder of sys.path below `root`, such as a .venv."""
    root_prefix = f"{root}{os.sep}"
    lower_prefixes = tuple(f"{entry}{os.sep}" for entry in sys.path if entry.startswith(root_prefix))

    def lies_there(module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            module_paths = [file]
        else:
            module_paths = [str(entry) for entry in getattr(module, "__path__", ())]
        return any(place.startswith(root_prefix) and not place.startswith(lower_prefixes) for place in module_paths)

    other_names = [name for name in modules if name.partition(".")[0] not in _NEVER_FORGOTTEN]
    return [name for name in other_names if lies_there(modules[name])]


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _load_standalone(subject: str, path: Path, file_name: Path) -> ModuleType:
    # The name is unique, so a user's "numpy.py" shadows nothing. It is registered for dataclasses, which look it up.
    name = "user_reward_" + hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()
    loader = SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(file_name)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except USER_FAULTS as error:
        del sys.modules[name]
        raise ValueError(f"{subject}: running {path.name} failed: {one_line(error)}") from error
    return module


def load_module(subject: str, name: str) -> ModuleType:
    """Import an installed module; if the import fails, raise a one-line ValueError with the import's error."""
    try:
        return importlib.import_module(name)
    except USER_FAULTS as error:
        raise ValueError(f"{subject}: importing {name!r} failed: {one_line(error)}") from error


_REMEDY = "import the names that they use outside of `if TYPE_CHECKING:`"


def annotation_of(function: Callable[..., Any], index: int, module: ModuleType, subject: str) -> Any:
    """Return the annotation of parameter `index` of a function in `module`.

    Other parameters' annotations are not evaluated, because they may use names that are imported only for type
    checkers.
    """
    parameter = list(inspect.signature(function).parameters.values())[index]
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    names = getattr(inspect.unwrap(function), "__globals__", vars(module))
    with _resolved(module, f"{subject}: the annotation of {parameter.name!r}"):
        return eval(parameter.annotation, names)


def fields_of(struct: type[msgspec.Struct], module: ModuleType, subject: str) -> tuple[FieldInfo, ...]:
    """Return the fields of a struct defined in `module`.

    After this call, msgspec can convert data to the struct in any module.
    """
    with _resolved(module, f"{subject}: the annotations of {struct.__name__}"):
        fields = msgspec.structs.fields(struct)
        msgspec.json.Decoder(struct)  # resolves annotations of nested structs; msgspec caches all types
    return fields


@contextmanager
def _resolved(module: ModuleType, subject: str) -> Iterator[None]:
    """Inside this context, evaluate annotations of `module` and of modules imported from its folder."""
    try:
        with known(module):
            yield
    except USER_FAULTS as error:
        remedy = f"; {_REMEDY}" if isinstance(error, NameError) else ""
        raise ValueError(f"{subject} cannot be resolved: {one_line(error)}{remedy}") from error
