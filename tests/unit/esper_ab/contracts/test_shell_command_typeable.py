"""Printed commands begin with `esper-ab` if a shell finds this installation, otherwise with the typed program."""

import ast
import re
import sys
from pathlib import Path

import pytest

import esper_ab
from esper_ab.commands.cli import TABLE
from esper_ab.contracts.shell_command import typeable

NOTHING = "/nonexistent"


@pytest.fixture
def started_as(monkeypatch):
    def set_command_line(path, *argv):
        monkeypatch.setenv("PATH", str(path))
        monkeypatch.setattr("sys.orig_argv", list(argv))
        monkeypatch.setattr("sys.argv", [next(word for word in argv if "python" not in word), "status"])

    return set_command_line


def write_script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (("python", "-m", "esper_ab"), "python -m esper_ab"),
        ((".venv/bin/python3.14", "-m", "esper_ab.launch"), ".venv/bin/python3.14 -m esper_ab"),
        (("/my env/bin/python", "-m", "esper_ab"), "'/my env/bin/python' -m esper_ab"),
        (("/env/bin/python", ".venv/bin/esper-ab"), ".venv/bin/esper-ab"),
        (("/env/bin/python", "/my env/bin/esper-ab"), "'/my env/bin/esper-ab'"),
    ],
)
def test_printed_commands_begin_like_the_typed_command(started_as, argv, program):
    started_as(NOTHING, *argv)
    assert typeable("`esper-ab report x` writes it\nesper-ab list") == f"`{program} report x` writes it\n{program} list"


def test_printed_commands_use_the_short_name_if_a_shell_finds_this_installation(started_as, tmp_path):
    link = tmp_path / "bin" / "esper-ab"  # like those of pipx
    link.parent.mkdir()
    link.symlink_to(Path(sys.executable).with_name("esper-ab"))
    for path in (Path(sys.executable).parent, link.parent):
        started_as(path, "python", "-m", "esper_ab")
        assert typeable("esper-ab report x") == "esper-ab report x"


def test_another_installation_on_the_path_is_not_suggested(started_as, tmp_path):
    started_as(write_script(tmp_path / "other" / "esper-ab").parent, "python", "-m", "esper_ab")
    assert typeable("esper-ab report x") == "python -m esper_ab report x"


def test_replacing_command_names_leaves_paths_and_prose_unchanged(started_as):
    started_as(NOTHING, "python", "bin/esper-ab")
    for text in ("pip install 'esper-ab[ray]'", "esper-ab's package", "/bin/esper-ab list", "--no-binary=esper-ab x"):
        assert typeable(text) == text
    assert typeable(typeable("esper-ab list")) == "bin/esper-ab list"


def test_every_command_named_in_a_message_exists():
    """Otherwise `typeable` would change prose, as in "esper-ab is"."""
    command_pattern = rf"esper-ab (?:(?:{'|'.join(TABLE)})\b|--help|\Z)"
    root = Path(esper_ab.__file__).parents[1]
    for path in (*(root / "esper_ab").rglob("*.py"), *(root / "workers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for start in re.finditer(r"(?<![\w./=-])esper-ab (?=[a-z\[-]|\Z)", node.value):
                    assert re.match(command_pattern, node.value[start.start() :]), (path, node.value)
