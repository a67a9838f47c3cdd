"""The rules of the house that no linter knows: file sizes, live settings, links and examples in the documentation."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from esper_ab.commands.launch import command
from esper_ab.contracts import catalog
from esper_ab.settings.assignments import EXPERIMENT_KEYS, GROUP_KEYS
from esper_ab.settings.flags import read_flags
from esper_ab.settings.parse import Catalogue, FileSettings, parse, read_toml

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("esper_ab", "workers") for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
LINE_CEILING = 400


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINE_CEILING


def _has_one_value(kind: object) -> bool:
    return get_origin(kind) is Literal and len(get_args(kind)) == 1


def _attributes_read() -> set[str]:
    """Names read as `something.name` anywhere but where settings are declared."""
    declared_in = {ROOT / "esper_ab" / "settings" / "experiment.py", *(ROOT / "esper_ab" / "contracts").glob("*.py")}
    trees = (ast.parse(path.read_text()) for path in SOURCES if path not in declared_in)
    return {
        node.attr for tree in trees for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def test_every_setting_is_read_somewhere() -> None:
    """A setting with one possible value is a statement in the record, not a switch: nothing needs to read it."""
    read = _attributes_read()
    switches = [key for key, kind in (GROUP_KEYS | EXPERIMENT_KEYS).items() if not _has_one_value(kind)]
    dead = [key for key in switches if key.rpartition(".")[2] not in read]
    assert not dead, f"settings that nothing reads: {dead}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_of_the_documentation_resolve(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:|#", target):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name} links to {target}"


def _examples() -> list[tuple[str, str]]:
    """Command lines of shell blocks that launch something, with the page they are on."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", page.read_text(), flags=re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                line = line.strip().removeprefix("$ ").partition("  #")[0]
                if re.match(r"(python -m esper_ab\.launch|esper-ab launch)\b", line):
                    found.append((page.name, line))
    return found


def _parsed(line: str) -> None:
    args = shlex.split(line)
    context = command.make_context("launch", args[2 if args[0] == "esper-ab" else 3 :])
    file = context.params["config"]
    assert file is None or file.suffix == ".toml"
    catalogue = Catalogue(rewards=catalog.names("workers.rewards"), controllers=catalog.names("workers.controllers"))
    parse(read_flags(context.params), FileSettings(), catalogue)


@pytest.mark.parametrize(("page", "line"), _examples())
def test_launch_examples_parse(page: str, line: str) -> None:
    _parsed(line)


def test_there_are_examples() -> None:
    assert len(_examples()) >= 5


def test_toml_examples_parse(tmp_path: Path) -> None:
    blocks = [block for page in PAGES for block in re.findall(r"```toml\n(.*?)```", page.read_text(), flags=re.DOTALL)]
    assert blocks
    catalogue = Catalogue(rewards=catalog.names("workers.rewards"), controllers=catalog.names("workers.controllers"))
    for block in blocks:
        tomllib.loads(block)
        path = tmp_path / "example.toml"
        path.write_text(block)
        parse(read_flags({}), read_toml(path), catalogue)


def test_documented_flags_are_those_that_exist() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    for option in command.params:
        for flag in option.opts:
            assert f"`{flag}" in page, f"docs/cli.md does not mention {flag}"


def _streams_without_record(source: str) -> bool:
    return re.search(r"cuda\.(Stream|stream|ExternalStream)\b", source) is not None and "record_stream" not in source


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_whoever_makes_a_stream_records_its_tensors_on_it(path: Path) -> None:
    """A tensor used on another stream than its own may be given away while it is read, unless it is recorded there."""
    assert not _streams_without_record(path.read_text())


def test_a_stream_would_be_found() -> None:
    assert _streams_without_record("side = torch.cuda.Stream()")
    assert _streams_without_record("with torch.cuda.stream(side):")
    assert not _streams_without_record("side = torch.cuda.Stream()\nx.record_stream(side)")


def _starts_python(source: str) -> list[int]:
    """Lines with a command line for a Python of one's own, or a spawned process that may import what a user has."""
    tree = ast.parse(source)
    lists = [node for node in ast.walk(tree) if isinstance(node, (ast.List, ast.Tuple))]
    lines = [node.lineno for node in lists if any(ast.unparse(one) == "sys.executable" for one in node.elts)]
    kinds = r"(.*\.)?((multiprocessing|get_context\(.*\))\.(Process|Pool)|ProcessPoolExecutor|multiprocessing\.spawn)"
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if "with nothing_of_the_user():" not in source:
        lines += [node.lineno for node in calls if re.fullmatch(kinds, ast.unparse(node.func))]
    return lines


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_child_processes_are_started_in_one_way(path: Path) -> None:
    """A user's folder may have a `workers`, or a queue.py: `child_command` keeps it out of the children."""
    if path.name != "own_packages.py":
        assert not _starts_python(path.read_text())


def test_a_child_process_started_in_another_way_would_be_found() -> None:
    assert _starts_python('subprocess.run([sys.executable, "-m", module, *arguments])')
    assert _starts_python('Popen((sys.executable, "-c", code))')
    assert _starts_python('child = multiprocessing.get_context("spawn").Process(target=os.getpid)')
    assert _starts_python("with ProcessPoolExecutor() as pool: ...")
    assert not _starts_python('subprocess.run(child_command("workers.commands.describe"))')
    assert not _starts_python('child = get_context("spawn").Process()\nwith nothing_of_the_user():\n    child.start()')


def _untyped_commands(source: str) -> list[str]:
    """Commands for a user that hold a value which no shell has been thought of for."""
    return re.findall(r"esper-ab [a-z]+ [^`\"';]*\{[^`\"';]*", source)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_with_values_are_made_in_one_place(path: Path) -> None:
    """A path may have a space in it: `esper_ab.contracts.shell_line` quotes."""
    assert not _untyped_commands(path.read_text())


def test_an_unquoted_command_would_be_found() -> None:
    assert _untyped_commands('f"to go on: esper-ab resume {run_dir}"')
    assert _untyped_commands('f"`esper-ab fsck {run_dir} --repair`"')
    assert not _untyped_commands("""f"`esper-ab report` and `{typed('resume', run_dir)}`" """)


OPEN_SAFELY = ("os.O_EXCL", "os.O_DIRECTORY", "os.O_NONBLOCK", "os.devnull")


@pytest.mark.parametrize("path", [path for path in SOURCES if path.is_relative_to(ROOT / "esper_ab")],
                         ids=lambda path: str(path.relative_to(ROOT)))  # fmt: skip
def test_no_open_waits_for_a_pipe_or_creates_behind_a_link(path: Path) -> None:
    """What may be there already and be written to is opened by `regular_file.open_regular`."""
    calls = [ast.unparse(node) for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.open"]
    unsafe = [call for call in calls if not any(flag in call for flag in OPEN_SAFELY)]
    behind_links = [call for call in calls if "os.O_CREAT" in call and "os.O_EXCL" not in call]
    assert unsafe + behind_links == []
