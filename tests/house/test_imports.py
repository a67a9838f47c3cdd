"""Modules that commands load, because imports delay every call.

`esper-ab --help` imports no command, the help of a command no heavy library, and a command only the allowed ones.
"""

import ast
import json
from pathlib import Path

import pytest
from house.sources import ROOT, breaking, nodes
from support.commands.command_lines import leaves
from support.journals.ready_journals import write
from support.journals.synthetic import Synthetic
from support.outcomes.csv_outcomes import csv_text, rows, scales
from support.processes.children import python

from esper_ab.commands.cli import SECTIONS, TABLE, load_command
from esper_ab.readers.external_plan import make_external_plan, save_plan
from esper_ab.verdict.analysis_plan import Rule

COMMANDS = ROOT / "esper_ab" / "commands"
HEAVY = {"torch", "numpy", "scipy", "matplotlib", "duckdb", "msgpack", "zmq", "jinja2", "rich"}
TO_TRAIN = {"esper_ab.campaign.planning", "esper_ab.campaign.running"}
PLANNING = "slurm-script"  # it plans the experiment to know how long it takes
LONGEST_HELP = 100  # characters of a line of the table: more would not fit a terminal of 120
# Heavy libraries that a command may load; child processes, such as the preflight, do not count. Training commands are
# called in other tests and may load all but torch. Scipy is needed for several pairs: here there is one.
TRAINING = {"calibrate", "gate", "launch", "resume", "stream new", "stream try"}
ALLOWED = {
    "cite": {"numpy"},
    "compare": {"numpy"},
    "design": {"numpy"},
    "export": {"numpy", "duckdb"},
    "figure": {"numpy", "matplotlib"},
    "judge": {"numpy"},
    "power": {"numpy"},
    "query": {"duckdb"},
    "report": {"numpy", "matplotlib", "jinja2"},
    "stream status": {"numpy"},
}
LIGHT = set(leaves()) - TRAINING - ALLOWED.keys()  # all others, including new ones, may load none
CALLS: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "EXPERIMENT", "COPY"),
    "design": ("design", "--groups", "a,b", "--seeds", "6", "--margin", "1", "--dry-run"),
    "doctor": ("doctor",),
    "evaluate": ("evaluate", "EXPERIMENT/policies/wait/0.pt"),
    "export": ("export", "EXPERIMENT", "--out", "tables"),
    "growth fetch": ("growth", "fetch", "digits"),
    "growth heuristic": ("growth", "heuristic", "--task", "nothing"),
    "growth rewards": ("growth", "rewards", "--task", "nothing"),
    "init": ("init", "made.toml"),
    "judge": ("judge", "held.json", "results.csv"),
    "list": ("list", "."),
    "power": ("power", "--experiment", "EXPERIMENT"),  # which has one replicate: refused, when everything is loaded
    "query": ("query", "EXPERIMENT", "SELECT 1"),
    "slurm-script": ("slurm-script", "--name", "x", "--nodes", "1", "--cores", "1", "--groups", "wait,random"),
    "stream status": ("stream", "status", "nothing"),
    "track": ("track", "EXPERIMENT", "--wandb", "sometimes"),
}
LOADED = (
    "import sys, json, contextlib, io\n"
    "from esper_ab.commands._exit_status import invoke\n"
    "from esper_ab.commands.cli import group\n"
    "found = []\n"
    "for words in json.loads(sys.argv[1]):\n"
    "    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as error:\n"
    "        status = invoke(group, words, 'esper-ab')\n"
    "    found.append([status, error.getvalue(), sorted(sys.modules)])\n"
    "print(json.dumps(found))\n"
)


def loaded(*calls: tuple[str, ...], folder: Path) -> list[tuple[int, str, set[str]]]:
    """Make the calls in one process; return exit status, stderr and all loaded modules after each."""
    child = python("-c", LOADED, json.dumps(calls), folder=folder)
    return [(status, error, set(modules)) for status, error, modules in json.loads(child.stdout.splitlines()[-1])]


def heavy(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & HEAVY


def test_top_level_help_loads_no_command(tmp_path):
    ((status, _, modules),) = loaded(("--help",), folder=tmp_path)
    assert status == 0
    assert not modules & {f"esper_ab.commands.{name}" for name in TABLE}
    assert not heavy(modules) | modules & {"msgspec", "esper_ab.commands._options"}


def test_the_command_table_lists_the_modules_of_the_folder():
    """Private modules of the folder start with an underscore."""
    files = {path.stem.replace("_", "-") for path in COMMANDS.glob("*.py") if not path.stem.startswith("_")}
    assert set(TABLE) == files - {"cli"}
    assert sum(map(len, SECTIONS.values())) == len(TABLE), "each under one heading"


def test_the_command_table_has_the_short_help_of_each_command():
    assert {name: load_command(name).get_short_help_str(limit=1000) for name in TABLE} == TABLE
    assert max(map(len, TABLE.values())) <= LONGEST_HELP


def test_command_help_loads_no_heavy_library(tmp_path):
    calls = [(*name.split(), "--help") for name in dict.fromkeys((*TABLE, *leaves()))]
    for call, (status, error, modules) in zip(calls, loaded(*calls, folder=tmp_path), strict=True):
        assert status == 0, error
        assert not heavy(modules), call
        assert call[0] != "launch" or not TO_TRAIN & modules, "it is called first, so no other call has loaded them"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("EXPERIMENT", "COPY"):
        write(folder / name, Synthetic(replicates=1).events())
    save_plan(make_external_plan(("new", "old"), ("0",), scales(), Rule()), folder / "held.json")
    (folder / "results.csv").write_text(csv_text(rows([1.0], [2.0])))
    return folder


# The number of our modules that a frequent call may load, and the libraries that it may not.
OWN_MODULES = {("status", "EXPERIMENT"): 68, ("launch", "--help"): 15}
NEVER_LIGHTLY = HEAVY | {"asyncio", "ssl", "psutil", "hashlib"}


@pytest.mark.parametrize("command", OWN_MODULES, ids=" ".join)
def test_a_light_command_loads_few_of_our_modules(command, folder):
    """`status` is called for a finished experiment. The numbers may only fall."""
    ((status, error, modules),) = loaded(command, folder=folder)
    assert status == 0, error
    own_modules = {name for name in modules if name.partition(".")[0] in ("esper_ab", "workers")}
    assert len(own_modules) <= OWN_MODULES[command], sorted(own_modules)
    assert not {name.partition(".")[0] for name in modules} & NEVER_LIGHTLY


def test_light_commands_load_no_heavy_library(folder):
    """All run in one process; the first command that loads a heavy library fails the test."""
    light = sorted(LIGHT, key=lambda name: (name == PLANNING, name))
    calls = [CALLS.get(name, (name, "EXPERIMENT")) for name in light]
    for name, (_, error, modules) in zip(light, loaded(*calls, folder=folder), strict=True):
        assert "--help" not in error, error  # refused by its own flags: nothing of it was called
        assert not heavy(modules), name
        assert name == PLANNING or not TO_TRAIN & modules, name


@pytest.mark.parametrize("name", ALLOWED)
def test_a_command_loads_exactly_its_allowed_heavy_libraries(name, folder):
    ((_, error, modules),) = loaded(CALLS.get(name, (name, "EXPERIMENT")), folder=folder)
    assert "--help" not in error, error
    assert heavy(modules) == ALLOWED[name]


# Libraries that are slow to load, or that not everybody has: a function may import them for itself.
LIBRARIES = {"torch", "numpy", "scipy", "matplotlib", "duckdb", "rich", "polars", "wandb", "tensorboard", "ray"}
OURS = sorted((ROOT / "esper_ab").rglob("*.py"))


def intrusions(path: Path) -> list[str]:
    """Private modules, `_NAME`, of other rooms that a file imports."""
    room = ".".join(path.relative_to(ROOT).parent.parts)
    findings = []
    for node in nodes(path.read_text()):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("esper_ab"):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            private_names = [name for name in names if name.rpartition(".")[2].startswith("_")]
            findings += [
                name
                for name in private_names
                if not name.rpartition(".")[2].startswith("__") and name.rpartition(".")[0] != room
            ]
    return findings


def test_no_module_imports_a_private_module_of_another_room():
    assert not {path: names for path in OURS if (names := intrusions(path))}


def unexplained(source: str) -> list[int]:
    """Lines of imports in functions, unless of a listed library or with a comment beside or above."""
    lines = source.splitlines()
    findings = set()
    for function in nodes(source):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        explained_line = 0  # the line after an import that is explained, or one of the same group
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                previous_line = lines[node.lineno - 2].strip()
                own_line = lines[node.lineno - 1]
                if previous_line.startswith("#") or "#" in own_line or explained_line == node.lineno:
                    explained_line = (node.end_lineno or node.lineno) + 1
                elif (module or "").partition(".")[0] not in LIBRARIES:
                    findings.add(node.lineno)
    return sorted(findings)


def test_an_import_in_a_function_has_a_comment_with_the_reason():
    assert breaking(unexplained, OURS) == set()
