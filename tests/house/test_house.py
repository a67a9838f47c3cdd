"""The rules of the house that no linter knows: file sizes, live settings, streams, child processes, opened files."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import msgspec
import pytest
from support.attributes import attributes_read

from esper_ab.contracts.settings import Arithmetic, GroupSettings
from esper_ab.settings.assignments import EXPERIMENT_KEYS, GROUP_KEYS
from esper_ab.settings.experiment import ExperimentSettings

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("esper_ab", "workers") for path in (ROOT / folder).rglob("*.py"))
DECLARATIONS = {ROOT / "esper_ab" / "settings" / "experiment.py", *(ROOT / "esper_ab" / "contracts").glob("*.py")}
LINE_CEILING = 400


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINE_CEILING


def _has_one_value(kind: object) -> bool:
    return get_origin(kind) is Literal and len(get_args(kind)) == 1


def _dead(sources: list[Path], declarations: set[Path]) -> list[str]:
    """Settings with a choice that none of `sources` reads of a value of their own class."""
    read = attributes_read([path for path in sources if path not in declarations], declarations)
    classes = {field.name: field.type.__name__ for field in msgspec.structs.fields(GroupSettings)}
    classes |= {"": ExperimentSettings.__name__, "arithmetic": Arithmetic.__name__}
    switches = [key for key, kind in (GROUP_KEYS | EXPERIMENT_KEYS).items() if not _has_one_value(kind)]
    parts = {key: key.rpartition(".") for key in switches}
    return [key for key, (section, _, name) in parts.items() if (classes[section], name) not in read]


def test_every_setting_is_read_somewhere() -> None:
    """A setting with one possible value is a statement in the record, not a switch: nothing needs to read it."""
    assert _dead(SOURCES, DECLARATIONS) == []


def test_a_dead_setting_would_be_found_though_others_have_its_name(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(
        "def f(asked: AskedExperiment, look: Look) -> float:\n"
        "    first, *_ = (group.settings for group in asked.groups)\n"
        "    for group in asked.groups:\n"
        "        ppo, other = group.settings.ppo, look\n"
        "    return look.alpha + ppo.lr + asked.margin\n"
    )
    dead = _dead([tmp_path / "reader.py"], DECLARATIONS)
    assert "alpha" in dead
    assert not {"margin", "ppo.lr"} & set(dead)


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
    """A path may have a space in it: `esper_ab.contracts.shell_command` quotes."""
    assert not _untyped_commands(path.read_text())


def test_an_unquoted_command_would_be_found() -> None:
    assert _untyped_commands('f"to go on: esper-ab resume {experiment_dir}"')
    assert _untyped_commands('f"`esper-ab fsck {experiment_dir} --repair`"')
    assert not _untyped_commands("""f"`esper-ab report` and `{shell_command('resume', experiment_dir)}`" """)


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


def test_no_class_name_is_defined_twice():
    """One name, one meaning, in both packages together; a script or a test may have a class of its own."""
    defined: dict[str, list[str]] = {}
    for path in (*(ROOT / "esper_ab").rglob("*.py"), *(ROOT / "workers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                defined.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert not {name: files for name, files in defined.items() if len(files) > 1}
