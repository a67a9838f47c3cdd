"""The source of a function that is in no file that can be imported, with the globals that it uses, as a file's text."""

from __future__ import annotations

import inspect
import math
import symtable
import sys
from collections.abc import Callable, Iterator
from numbers import Number
from pathlib import Path
from types import ModuleType
from typing import Any

from esper_ab.api.setting_names import plain
from esper_ab.api.typed_source import source_of
from esper_ab.contracts.errors import UsageError

_HEADER = '"""Written by esper_ab.{caller}, because this function is in no file that can be imported."""'
_FUTURE = "from __future__ import annotations"
_PLAIN = (bool, int, str, bytes, type(None))
_INSTALLED = {"site-packages", "dist-packages"}
_LONGEST = 10_000  # characters of a constant


def source_with_globals(function: Callable[..., Any], caller: str) -> str:
    """Return the text of a file that defines `function`; UsageError, with one line, if that is not possible.

    `caller`: as in `reference_of`.
    """
    collection = _Collected(function, caller)
    collection.define(function.__name__, function)
    folders = users_folders()
    lines = [_HEADER.format(caller=caller), "", _FUTURE, "", "import sys", *sorted(collection.imports), ""]
    if folders:
        lines.append(f"sys.path += [folder for folder in {folders!r} if folder not in sys.path]")
    return "\n".join([*lines, *collection.constants, *(f"\n\n{text}" for text in collection.definitions.values())])


def users_folders() -> list[str]:
    """Return the entries of sys.path that the user has added, and that a new process would not have."""
    return [entry for entry in sys.path if _is_users(entry)]


def _is_users(entry: str) -> bool:
    """Whether an entry of sys.path is a folder that the user has added, and that a new process would not have."""
    folder = Path(entry)
    if not folder.is_absolute() or not folder.is_dir() or _INSTALLED & {*folder.parts}:
        return False
    return not any(folder.is_relative_to(python) for python in (sys.prefix, sys.base_prefix))


class _Collected:
    """Imports, constants and definitions on which a function depends."""

    def __init__(self, function: Callable[..., Any], caller: str) -> None:
        self.imports = set[str]()
        self.constants: list[str] = []
        self.definitions: dict[str, str] = {}  # by name, those that others use first
        self._function = function
        self._caller = caller
        self._own = ("__main__", function.__module__)  # modules that no other process can import
        self._begun = set[str]()

    def define(self, name: str, value: Any) -> None:
        """Add the definition of a function or class, after all that it uses."""
        self._begun.add(name)
        try:
            text = source_of(value)
        except (OSError, TypeError):
            raise UsageError(
                f"{self._caller}: the source of {value.__name__} cannot be read, because it was typed at a prompt or "
                "piped into Python; save it in a file"
            ) from None
        namespace = inspect.unwrap(self._function).__globals__
        for global_name in _globals_of(text):
            if global_name in namespace and global_name not in self._begun:
                self._begun.add(global_name)
                self._add(global_name, namespace[global_name])
        self.definitions[name] = text
        if value.__name__ != name:
            self.definitions[name] += f"\n\n{name} = {value.__name__}\n"

    def _add(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            alias = "" if name == value.__name__ else f" as {name}"
            self.imports.add(f"import {value.__name__}{alias}")
            return
        module = getattr(value, "__module__", None)
        is_definition = isinstance(value, type) or inspect.isfunction(inspect.unwrap(value))
        if is_definition and module in self._own:
            self.define(name, value)
            return
        if constant := _constant(value) or self._made(name, value):
            self.constants.append(f"{name} = {constant}")
            return
        own_name = getattr(value, "__qualname__", None) or name
        if module not in self._own and getattr(sys.modules.get(str(module)), own_name, None) is value:
            self.imports.add(f"from {module} import {own_name} as {name}")
            return
        raise UsageError(
            f"{self._caller}: {self._function.__name__} uses {name!r}, a {type(value).__name__}, which cannot be "
            "sent to other processes; make it inside the function, or put both into a module and import the function"
        )

    def _made(self, name: str, value: Any) -> str:
        """Return a call that makes `value`, as of a path or a torch.device, of a callable that can be imported.

        The callable is imported; "" if pickle would make the value in another way.
        """
        try:
            reduction = value.__reduce_ex__(2)
        except (TypeError, ValueError, AttributeError):
            return ""
        if not isinstance(reduction, tuple):
            return ""
        maker, arguments, *state = reduction
        texts = list(map(_constant, arguments))
        module = getattr(maker, "__module__", "")
        maker_name = getattr(maker, "__qualname__", "")
        importable = getattr(sys.modules.get(module), maker_name, None) is maker and module not in self._own
        if not (importable and all(texts)) or any(part is not None for part in state) or module == "copyreg":
            return ""
        self.imports.add(f"from {module} import {maker_name} as make_{name}")
        return f"make_{name}({', '.join(texts)})"


def _constant(value: Any) -> str:
    """Return a number, a text or a collection of such as an expression; "" for any other value."""
    if isinstance(value, Number):
        value = plain(value)  # a number of NumPy
    if not _is_plain(value):
        return ""
    text = repr(value)
    if len(text) > _LONGEST:
        return ""
    return text


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set):
        return all(map(_is_plain, value)) and bool(value or type(value) is not set)
    if type(value) is dict:
        return all(map(_is_plain, (*value, *value.values())))
    return type(value) in _PLAIN or (type(value) is float and math.isfinite(value))


def _globals_of(text: str) -> Iterator[str]:
    """Yield the global names that the definition `text` uses, when it is executed and when it is called."""
    table = symtable.symtable(f"{_FUTURE}\n{text}", "<source>", "exec")
    yield from (symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced())
    yield from _globals_below(table)


def _globals_below(table: symtable.SymbolTable) -> Iterator[str]:
    for child in table.get_children():
        yield from (symbol.get_name() for symbol in child.get_symbols() if symbol.is_global())
        yield from _globals_below(child)
