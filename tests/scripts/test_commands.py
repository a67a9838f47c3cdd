"""Commands that scripts run: every option of ours in them exists, so no script has to be run to find that out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.command_lines import check_command_line

from esper_ab.commands.cli import TABLE, load_command

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SHELL = sorted(path for path in SCRIPTS.iterdir() if path.is_file() and path.read_text().startswith("#!"))
LAUNCHING = sorted(path for path in SCRIPTS.rglob("*.py") if "esper_ab.launch\"" in path.read_text())
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OTHER_PROGRAM = re.compile(r"[\[(](f?'scripts/|'git'|browser\b)|_git\(")  # beginnings of a sequence or a call


def _commands(script: Path) -> list[str]:
    lines = script.read_text().replace("\\\n", " ").splitlines()
    return [line.removeprefix("exec .venv/bin/") for line in lines if "-m esper_ab.launch" in line]


@pytest.mark.parametrize(("script", "line"), [(path.name, line) for path in SHELL for line in _commands(path)])
def test_a_shell_script_gives_options_that_exist(script: str, line: str) -> None:
    ((name, params),) = check_command_line(line.replace(' "$@"', ""))
    assert name == "launch", script
    assert params["groups"] or params["what"]


def _written(script: Path) -> Iterator[str]:
    """Options in the texts of a script, but for docstrings, its own, and those of other programs."""
    tree = ast.parse(script.read_text())
    own, elsewhere = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring
            elsewhere.add(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            own |= {part.value for part in node.args if isinstance(part, ast.Constant)}
        if OTHER_PROGRAM.match(ast.unparse(node)):
            elsewhere |= set(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in elsewhere:
            yield from set(OPTION.findall(node.value)) - own


@pytest.mark.parametrize("script", LAUNCHING, ids=lambda path: path.stem)
def test_a_script_gives_options_that_exist(script: Path) -> None:
    there = {"--help", *(option for name in TABLE for param in load_command(name).params for option in _names(param))}
    assert set(_written(script)) <= there


def _names(param: click.Parameter) -> list[str]:
    return [*param.opts, *param.secondary_opts]
