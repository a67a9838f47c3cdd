"""Small bugs: swap a comparison, operator, condition or number; remove a result or a statement."""

import ast
import random
from collections.abc import Iterator

from mutation.scopes import Place, key, parsed, shortened

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_LONGEST = 100  # characters of a segment
# If one of these arguments changes, less is checked, or results that are not kept are computed again.
_CHECKS_ONLY = {"strict", "frozen", "kw_only", "slots", "order", "eq", "maxsize", "stacklevel"}


def mutations(place: Place, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Return pairs of a segment and its replacement."""
    if isinstance(place.node, ast.stmt):
        yield from _removed(place.node)
    yield from _swapped(place, rng)
    if place.field in ("test", "ifs") and isinstance(place.node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        yield ast.unparse(place.node), f"not {ast.unparse(place.node)}"


def _swapped(place: Place, rng: random.Random) -> Iterator[tuple[str, str]]:
    node = place.node
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                yield from _changed(node, node.ops, index, _SWAPPED[type(operator)]())
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _SWAPPED and not _joins(place):
            yield from _changed(node, node, "op", _SWAPPED[type(node.op)]())
        case ast.BoolOp():
            yield from _changed(node, node, "op", _SWAPPED[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield ast.unparse(node), ast.unparse(node.operand)
        case ast.Constant(value=bool() | int() | float() as value) if not _only_checks(place):
            changed_value = (not value) if isinstance(value, bool) else value + rng.choice((-1, 1))
            yield from _changed(_holder(place), node, "value", changed_value)


def _removed(node: ast.stmt) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield _statement(node), "return None"
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield _statement(node), "pass"
        case ast.Expr(value=value) if "assert_never" not in ast.unparse(value):
            yield _statement(node), "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _statement(node), "pass"


def _statement(node: ast.stmt) -> str:
    """Return the text by which a statement is found again: shortened if it raises or is long."""
    text = ast.unparse(node)
    short_node = shortened(node)
    return (
        ast.unparse(short_node)
        if short_node is not None and (isinstance(node, ast.Raise) or len(text) > _LONGEST)
        else text
    )


def _changed(
    holder: ast.AST, parent: ast.AST | list, field: str | int, replacement: object
) -> Iterator[tuple[str, str]]:
    """Return the source of `holder` before and after setting a field to `replacement`; the field is restored."""
    fields = parent if isinstance(parent, list) else vars(parent)
    original_source = ast.unparse(holder)
    original_value = fields[field]
    fields[field] = replacement
    changed_source = ast.unparse(holder)
    fields[field] = original_value
    yield original_source, changed_source


def _holder(place: Place) -> ast.AST:
    """Return the enclosing expression that identifies a number: `x + 1` says more than `1`."""
    for node in reversed(place.above[1:]):
        if isinstance(node, ast.Slice | ast.Starred | ast.FormattedValue) or not isinstance(node, ast.expr | ast.stmt):
            continue
        if isinstance(node, ast.stmt) and hasattr(node, "body"):
            break
        text = ast.unparse(node)
        if len(text) > _LONGEST:
            break
        if isinstance(node, ast.stmt) or _stands_alone(node, text):
            return node
    return place.node


def _stands_alone(node: ast.AST, text: str) -> bool:
    """Return whether the text alone parses to the same piece; assignment targets and indices with slices do not."""
    try:
        return key(parsed(text)) == key(node)
    except SyntaxError:
        return False


def _only_checks(place: Place) -> bool:
    parent = place.above[-1]
    return isinstance(parent, ast.keyword) and parent.arg in _CHECKS_ONLY


def _joins(place: Place) -> bool:
    """Return whether `|` joins types (`int | str`) or `+` joins texts, which have no other operator."""
    parts = (getattr(place.node, "left", None), getattr(place.node, "right", getattr(place.node, "value", None)))
    if any(isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", None), str | bytes) for part in parts):
        return True
    if not isinstance(place.node, ast.BinOp) or not isinstance(place.node.op, ast.BitOr):
        return False
    called_names = {ast.unparse(node.func) for node in place.above if isinstance(node, ast.Call)}
    return isinstance(place.above[0], ast.Module) or not called_names.isdisjoint({"isinstance", "issubclass"})
