"""The source of a definition that was typed into a notebook or at a prompt, or that is inside another function."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any


def source_of(value: Any) -> str:
    """Return the source of a function or a class, without indentation; OSError if no text holds it."""
    if isinstance(inspect.unwrap(value), FunctionType):
        return textwrap.dedent(inspect.getsource(value))
    for file in _files_of(value):
        lines = linecache.getlines(file)
        if definition := _find_class("".join(lines), value.__name__):
            first_line = min([definition.lineno, *(decorator.lineno for decorator in definition.decorator_list)])
            return "".join(lines[first_line - 1 : definition.end_lineno])
    raise OSError(f"no source of {value.__name__}")


def _files_of(value: type) -> Iterator[str]:
    """Yield the names under which `linecache` may have the text with a class: those of its methods, then all cells."""
    for member in vars(value).values():
        if isinstance(member, FunctionType) and member.__module__ == value.__module__:
            yield member.__code__.co_filename
    yield from reversed(list(linecache.cache))


def _find_class(text: str, name: str) -> ast.ClassDef | None:
    """Return the last definition of a class at the top level of a text."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
    return classes[-1] if classes else None
