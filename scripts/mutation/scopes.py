"""The code that runs in a function, class or module, as syntax trees: find a piece of it and replace it.

A scope is named as in Python (`Class.method`, `outer.<locals>.inner`; "" is the module). Its code excludes functions
and classes inside the scope. Code that never runs, or is only text, is left out: imports, docstrings, annotations,
decorators, base classes, error messages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Piece = ast.expr | ast.stmt
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "exc", "cause", "msg", "type_params"}
_SKIPPED_NAMES = {"__all__", "__slots__"}


@dataclass(frozen=True)
class Place:
    """A node of a scope. `index`: its position if `field` of its parent is a list."""

    node: ast.AST
    above: tuple[ast.AST, ...]  # from the scope down to the node's parent
    field: str
    index: int | None
    is_default: bool  # a default of an argument, which is computed when the function is made

    def put(self, new_node: ast.AST) -> None:
        parent = self.above[-1]
        if self.index is None:
            setattr(parent, self.field, new_node)
        else:
            getattr(parent, self.field)[self.index] = new_node


def scopes(tree: ast.Module) -> dict[str, Scope]:
    """Return all scopes of a module by name; if a name occurs several times, the last one counts, as in Python."""
    return dict(_named(tree, ""))


def _named(scope: Scope, name: str) -> Iterator[tuple[str, Scope]]:
    yield name, scope
    prefix = f"{name}.<locals>." if isinstance(scope, _FUNCTIONS) else f"{name}." * bool(name)
    waiting_nodes: list[ast.AST] = list(reversed(scope.body))
    while waiting_nodes:
        node = waiting_nodes.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield from _named(node, prefix + node.name)
        else:
            waiting_nodes += reversed(list(ast.iter_child_nodes(node)))


def places(scope: Scope) -> Iterator[Place]:
    """Return the nodes of a scope that run, in source order."""
    if isinstance(scope, _FUNCTIONS):
        yield from _below(scope.args, (scope,), is_default=True)
    yield from _in_field(scope, "body", (scope,), is_default=False)


def _below(parent: ast.AST, parents: tuple[ast.AST, ...], *, is_default: bool) -> Iterator[Place]:
    for field in parent._fields:
        if field not in _SKIPPED_FIELDS:
            yield from _in_field(parent, field, (*parents, parent), is_default=is_default)


def _in_field(parent: ast.AST, field: str, parents: tuple[ast.AST, ...], *, is_default: bool) -> Iterator[Place]:
    value = getattr(parent, field)
    for index, node in enumerate(value) if isinstance(value, list) else ((None, value),):
        if isinstance(node, ast.AST) and not _is_left_out(node):
            yield Place(node, parents, field, index, is_default)
            yield from _below(node, parents, is_default=is_default)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef, *_FUNCTIONS)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring, or `...`
        return True
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id in _SKIPPED_NAMES for target in node.targets)
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def parsed(text: str) -> Piece:
    """Return `text` parsed as an expression or statement."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return ast.parse(text).body[0]


def key(node: ast.AST) -> str:
    """Return a key that is equal for pieces that differ only in layout."""
    return ast.dump(node)


def shortened(node: ast.AST) -> ast.AST | None:
    """Return a statement with `...` for its message or value, so that the statement is found after text changes."""
    short_node = None
    ellipsis = ast.Constant(...)
    match node:
        case ast.Raise(exc=ast.Call(func=function)):
            short_node = ast.Raise(ast.Call(function, [ellipsis], []))
        case ast.Return(value=ast.expr()):
            short_node = ast.Return(ellipsis)
        case ast.Expr(value=ast.Call(func=function)):
            short_node = ast.Expr(ast.Call(function, [ellipsis], []))
        case ast.Assign(targets=targets):
            short_node = ast.Assign(targets, ellipsis)
    return None if short_node is None else ast.copy_location(short_node, node)


def _is(node: ast.AST, wanted_key: str) -> bool:
    short_node = shortened(node)
    return key(node) == wanted_key or (short_node is not None and key(short_node) == wanted_key)


def occurrences(scope: Scope, text_before: str, text_after: str) -> list[Place]:
    """Return where `text_before` occurs in a scope. A line that is only an expression counts as a statement only if
    `text_after` is a statement.
    """
    piece = parsed(text_before)
    if isinstance(piece, ast.expr) and isinstance(parsed(text_after), ast.stmt):
        piece = ast.Expr(piece)
    wanted_key = key(piece)
    kind = type(piece)
    return [place for place in places(scope) if type(place.node) is kind and _is(place.node, wanted_key)]


def replace(place: Place, new_text: str) -> None:
    """Replace a node with `new_text`, at the same line."""
    new_node = parsed(new_text)
    for node in ast.walk(new_node):
        if "lineno" in node._attributes:
            ast.copy_location(node, place.node)
    place.put(new_node)
