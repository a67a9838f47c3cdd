"""A script reads no argument that its command line does not declare: a renamed flag is renamed where it is read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "scripts").glob("*.py"))


def declared_and_read(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names that `add_argument` makes, and attributes that are read of what `parse_args` returned."""
    declared, read = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            words = [str(word.value) for word in node.args if isinstance(word, ast.Constant)]
            told = [str(key.value.value) for key in node.keywords
                    if key.arg == "dest" and isinstance(key.value, ast.Constant)]
            long = [word for word in words if not word.startswith("-") or word.startswith("--")]
            declared |= {word.lstrip("-").replace("-", "_") for word in told or long}
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        nodes = list(ast.walk(function))
        made = [node for node in nodes if isinstance(node, ast.Assign)]
        parsed = {
            target.id for node in made if ast.unparse(node.value).endswith("parse_args()")
            for target in node.targets if isinstance(target, ast.Name)
        }
        read |= {node.attr for node in nodes
                 if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in parsed}
    return declared, read


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_is_read_is_declared(path: Path) -> None:
    declared, read = declared_and_read(ast.parse(path.read_text(encoding="utf-8")))
    assert read <= declared, f"read, but not declared: {sorted(read - declared)}"
