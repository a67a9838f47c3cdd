"""Which attributes of which classes a program reads, by the annotations in its source: mypy's answer, in small.

Types are known of parameters, of declared fields, of what is assigned from something known, of what an annotated
function returns, and of what a loop over a known sequence gives. Class names are taken to be unique.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

Names = dict[str, str]  # name -> annotation, as it is written


def attributes_read(sources: Iterable[Path], declarations: Iterable[Path]) -> set[tuple[str, str]]:
    """(class, attribute) of all that `sources` read; an inherited attribute counts for every class that it has.

    `declarations` say of what types fields are; what they read themselves does not count.
    """
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sources]
    readings = _Readings([*trees, *(ast.parse(path.read_text(encoding="utf-8")) for path in declarations)])
    for _ in range(2):  # a field may get its type from an assignment that comes later
        for tree in trees:
            for scope, names in _scopes(tree, {}):
                readings.follow(scope, names)
    return readings.found


class _Readings:
    def __init__(self, trees: list[ast.Module]) -> None:
        self.found: set[tuple[str, str]] = set()
        self._bases: dict[str, list[str]] = {}
        self._fields: dict[tuple[str, str], str] = {}
        self._returned: Names = {}
        for node in (node for tree in trees for node in ast.walk(tree)):
            if isinstance(node, ast.ClassDef):
                self._bases[node.name] = [ast.unparse(base) for base in node.bases]
                self._fields |= {(node.name, name): annotation for name, annotation in _declared(node)}
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                self._returned[node.name] = ast.unparse(node.returns)

    def follow(self, scope: ast.AST, around: Names) -> None:
        """Note what `scope` reads where the names `around` are known."""
        known, nodes = dict(around), list(_own_nodes(scope))
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target, value in _pairs(node):
                    self._bind(target, self._type(value, known), known)
            if isinstance(node, ast.For | ast.comprehension):
                self._bind(node.target, _element(self._type(node.iter, known)), known)
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.found |= {(owner, node.attr) for owner in self._line(self._type(node.value, known))}

    def _bind(self, target: ast.expr, annotation: str, known: Names) -> None:
        if annotation and isinstance(target, ast.Name):
            known[target.id] = annotation
        elif annotation and isinstance(target, ast.Attribute):
            self._fields.setdefault((self._type(target.value, known), target.attr), annotation)

    def _type(self, node: ast.expr, known: Names) -> str:
        """The annotation of an expression; "" when it is not known."""
        if isinstance(node, ast.Name):
            return known.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owners = self._line(self._type(node.value, known))
            return next((self._fields[owner, node.attr] for owner in owners if (owner, node.attr) in self._fields), "")
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            return name if name in self._bases else self._returned.get(name, "")
        return ""

    def _line(self, name: str) -> Iterator[str]:
        """A class and its bases."""
        name = name.removesuffix(" | None")
        if name in self._bases:
            yield name
            for base in self._bases[name]:
                yield from self._line(base)


def _declared(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Fields and properties with their annotations."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign):
            yield ast.unparse(item.target), ast.unparse(item.annotation)
        if isinstance(item, ast.FunctionDef) and item.decorator_list and item.returns is not None:
            yield item.name, ast.unparse(item.returns)


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with its value, also of a, b = x, y."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _element(annotation: str) -> str:
    """X of tuple[X, ...] and Sequence[X]."""
    return annotation.partition("[")[2].removesuffix("]").removesuffix(", ...")


def _scopes(node: ast.AST, names: Names) -> Iterator[tuple[ast.AST, Names]]:
    """The module and every function in it, with the annotated parameters that are known there."""
    if isinstance(node, ast.ClassDef):
        names = names | {"self": node.name}
    if isinstance(node, ast.FunctionDef):
        arguments = [*node.args.args, *node.args.kwonlyargs]
        names = names | {one.arg: ast.unparse(one.annotation) for one in arguments if one.annotation is not None}
    if isinstance(node, ast.FunctionDef | ast.Module):
        yield node, names
    for child in ast.iter_child_nodes(node):
        yield from _scopes(child, names)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a scope and in no function within it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
            yield from _own_nodes(node)
