"""House rules that no linter checks: file sizes, unused settings, streams, child processes, opened files."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Literal, get_args, get_origin

import pytest
from house.sources import ROOT, SOURCES, breaking, calls, name_of, nodes

from esper_ab.settings.schema import FIELDS

TESTS_AND_SCRIPTS = sorted(path for folder in ("tests", "scripts") for path in (ROOT / folder).rglob("*.py"))
DECLARATIONS = {ROOT / "esper_ab" / "settings" / "experiment.py", *(ROOT / "esper_ab" / "contracts").glob("*.py")}
LINE_CEILING = 400
FUNCTION_LINE_CEILING = 50
LEAST_DOCUMENTED_PERCENT = 70


def test_no_file_is_too_long():
    assert breaking(lambda text: len(text.splitlines()) > LINE_CEILING, SOURCES + TESTS_AND_SCRIPTS) == set()


def _long_functions(source: str) -> list[str]:
    nodes_of_source = ast.walk(ast.parse(source))  # also of tests, whose trees nothing else needs
    functions = [node for node in nodes_of_source if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINE_CEILING]


def test_no_function_is_too_long():
    assert _long_functions("def long():\n" + "    pass\n" * FUNCTION_LINE_CEILING) == ["long"]
    assert breaking(_long_functions, SOURCES + TESTS_AND_SCRIPTS) == set()


def _inner_headers(source: str) -> list[str]:
    return re.findall(r"^# -{2,} .*$", source, re.MULTILINE)


def test_no_module_has_section_headers():
    assert _inner_headers("x = 1\n\n# --- limits ---\n") == ["# --- limits ---"]
    assert breaking(_inner_headers) == set()


def test_most_functions_of_the_packages_have_a_docstring():
    functions = [
        node
        for path in SOURCES
        for node in nodes(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    documented_functions = sum(ast.get_docstring(function, clean=False) is not None for function in functions)
    assert 100 * documented_functions / len(functions) >= LEAST_DOCUMENTED_PERCENT


def test_no_file_has_a_merge_conflict_marker():
    """No file has a conflict marker of `git merge`."""
    conflict_marker = re.compile(r"^(?:<{7}|>{7}|\|{7}) .*$", re.MULTILINE)
    folders = ("esper_ab", "workers", "tests", "scripts", "docs")
    written_paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    texts = [path for path in written_paths if path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".cpp", ".h"}]
    assert not [path for path in texts if path.is_file() and conflict_marker.search(path.read_text())]


# Other names under which the settings of a section are read, besides the section's own.
CALLED = {"": {"experiment", "asked", "asked_experiment"}, "growth": {"rule"}}


def test_every_setting_is_read_somewhere():
    """A setting with a single possible value only documents a fact, so nothing needs to read it."""
    readers_by_field = defaultdict(set)
    for path in set(SOURCES) - DECLARATIONS:
        for node in nodes(path.read_text()):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                readers_by_field[node.attr].add(ast.unparse(node.value).rpartition(".")[2].lstrip("_"))
    switches = [
        key for key, field in FIELDS.items() if get_origin(field.type) is not Literal or len(get_args(field.type)) > 1
    ]
    parts = {key: key.rpartition(".") for key in switches}
    assert not [
        key
        for key, (section, _, name) in parts.items()
        if not readers_by_field[name] & ({section} | CALLED.get(section, {"settings"}))
    ]


# --- in no file of the packages --------------------------------------------------------------------------------------


def _makes_streams(source: str) -> bool:
    return re.search(r"cuda\.(Stream|stream|ExternalStream)\b", source) is not None and "record_stream" not in source


def test_a_module_that_makes_a_cuda_stream_records_tensors_on_it():
    """Without `record_stream`, a tensor read on another stream may be freed and reused meanwhile."""
    assert breaking(_makes_streams) == set()


def _starts_python(source: str) -> list[int]:
    """Lines that start a Python or spawn a process without keeping the user's modules out.

    A user's folder may have a `workers` or a queue.py; `child_command` hides it from children.
    """
    lists = [node for node in nodes(source) if isinstance(node, (ast.List, ast.Tuple))]
    lines = [node.lineno for node in lists if any(ast.unparse(item) == "sys.executable" for item in node.elts)]
    kinds = r"(.*\.)?((multiprocessing|get_context\(.*\))\.(Process|Pool)|ProcessPoolExecutor|multiprocessing\.spawn)"
    if "with without_users_main_module():" not in source:
        lines += [node.lineno for node in calls(source) if re.fullmatch(kinds, ast.unparse(node.func))]
    return lines


def _forgets_bytes(source: str) -> list[str]:
    """Handlers that miss invalid UTF-8, for which msgspec raises no MsgspecError; UNREADABLE has both errors."""
    return re.findall(r"except .*msgspec\.(?:MsgspecError|DecodeError)", source)


def _untyped_commands(source: str) -> list[str]:
    """Commands for users with an unquoted value: a path may have a space, so use `contracts.wording`."""
    return re.findall(r"esper-ab (?!is )[a-z]+ [^`\"';]*\{[^`\"';]*", source)


def _unaddressed(source: str) -> list[str]:
    """Commands for users without the experiment's directory, which fail when pasted."""
    command_pattern = "export|logs|query|report|resume|status|stop|tidy"
    return re.findall(rf"`esper-ab (?:{command_pattern})`", re.sub(r'(?s)""".*?"""|#.*?\n', "", source))


def _misses_an_exit(source: str) -> list[int]:
    """Handlers of Exception, which miss SystemExit: a user's sys.exit() must not end a worker."""
    handlers = (node for node in nodes(source) if isinstance(node, ast.ExceptHandler) and node.type)
    return [node.lineno for node in handlers if ast.unparse(node.type) == "Exception"]


def _imports_in_a_loop(source: str) -> list[int]:
    """Imports within a loop, which cost time in every iteration and hide dependencies."""
    loops = (node for node in nodes(source) if isinstance(node, ast.For | ast.While))
    return [node.lineno for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Import | ast.ImportFrom)]


def _share(term: ast.expr) -> float | None:
    """The literal factor of `0.9 * x`."""
    if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult):
        for side in (term.left, term.right):
            if isinstance(side, ast.Constant) and isinstance(side.value, float):
                return side.value
    return None


def _literal_averages(source: str) -> list[int]:
    """Lines with a literal smoothing weight: 0.9 * x + 0.1 * y, or lerp(x, 0.1)."""
    lines = []
    for node in nodes(source):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            a = _share(node.left)
            b = _share(node.right)
            if a is not None and b is not None and abs(a + b - 1.0) < 1e-9:
                lines.append(node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("lerp", "lerp_"):
            lines += [node.lineno for arg in node.args if isinstance(arg, ast.Constant)]
    return lines


def _forks(source: str) -> list[int]:
    """Lines that fork: a process with CUDA initialised must not."""
    if "fork" not in source:
        return []
    fork_pattern = r"os\.fork(pty)?\(.*|(.*\.)?(get_context|set_start_method)\(.*\bfork(server)?\b.*\)"
    return [node.lineno for node in calls(source) if re.fullmatch(fork_pattern, ast.unparse(node))]


# A rule, an example that breaks it, and a pattern of the files that are exempt.
RULES: list[tuple[Callable[[str], list[int] | list[str]], str, str]] = [
    (_starts_python, 'subprocess.run([sys.executable, "-m", module])', "esper_ab/contracts/own_packages.py"),
    (_starts_python, "with ProcessPoolExecutor() as pool: ...", "esper_ab/contracts/own_packages.py"),
    (_forks, "pid = os.fork()", "esper_ab/contracts/guard.py|workers/process/start_process.py"),
    (_forks, 'context = get_context("fork")', "esper_ab/contracts/guard.py|workers/process/start_process.py"),
    (_forgets_bytes, "except msgspec.DecodeError:", ""),
    (_misses_an_exit, "try: train()\nexcept Exception: pass", "esper_ab/.*"),
    (_imports_in_a_loop, "for _ in found: import torch", ""),
    (_literal_averages, "y = 0.9 * y + x * 0.1", "esper_ab/.*"),
    (_literal_averages, "y.lerp_(x, 0.1)", "esper_ab/.*"),
    (_untyped_commands, 'f"to go on: esper-ab resume {experiment_dir}"', ""),
    # those that are left know the directory of the experiment that they speak of
    (_unaddressed, 'f"{entries}: see `esper-ab report`"', r"(?!esper_ab/(live|report|control|journal)/).*"),
]


@pytest.mark.parametrize(("rule", "example", "exempt_pattern"), RULES, ids=lambda part: getattr(part, "__name__", ""))
def test_every_module_obeys_the_source_rules(rule, example, exempt_pattern):
    assert rule(example)
    concerned_files = [path for path in SOURCES if not re.fullmatch(exempt_pattern, name_of(path))]
    assert breaking(rule, concerned_files) == set()


# --- in known files only ---------------------------------------------------------------------------------------------


OPEN_SAFELY = ("os.O_EXCL", "os.O_DIRECTORY", "os.O_NONBLOCK", "os.O_NOFOLLOW", "os.devnull", "_FOLDER")
# Modules that change files directly: shared helpers, and files outside experiment directories.
WRITES_ITSELF = {
    "contracts/files_below.py": "the one place",
    "contracts/private_folder.py": "temporary folders",
    "control/nodes.py": "an empty temporary file",
    "contracts/child.py": "temporary files without names",
    "commands/export.py": "drafts in a folder that `below` made",
    "health/storage.py": "tries whether a folder can be written",
    "code_trees/working_tree.py": "a copy of git's index, in a temporary folder",
    "readers/sql.py": "a temporary file without a name to be found",
    "live/console.py": "likewise",
    "workers/kinds/growth/commands/fetch.py": "the user's data",
    "workers/native/build.py": "the cache of kernels",
    "workers/kinds/trainer/words.py": "rmtree in a folder that `below` made, which follows no link",
    "workers/kinds/trainer/python_rehearsal.py": "a temporary folder",
    "workers/kinds/trainer/trial.py": "likewise",
    "workers/kinds/trainer/standin/wandb.py": "a script's process, in the folder of its run",
    "trackers/wandb_runs.py": "rmtree in a folder that `below` checked, which follows no link",
}
_CHANGES = re.compile(
    r".*\.(write_text|write_bytes|unlink|rmdir|touch|mkdir|rename|symlink_to|hardlink_to|chmod)"
    r"|os\.(remove|unlink|rmdir|mkdir|makedirs|rename|renames|replace|truncate|symlink|link|mkfifo)"
    r"|shutil\.(rmtree|copy\w*|move)|tempfile\.\w+|(Named)?TemporaryFile|TemporaryDirectory|mkstemp|mkdtemp"
)


def _opens_to_write(call: ast.Call) -> bool:
    """True if the call opens a file with a writing mode, or with a mode that is not a literal."""
    name = ast.unparse(call.func)
    if not (name in ("open", "io.open", "io.FileIO") or name.endswith(".open")) or name in ("os.open", "tarfile.open"):
        return False
    place = 1 if name in ("open", "io.open", "io.FileIO") else 0
    modes = [*call.args[place : place + 1], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return any(not isinstance(mode, ast.Constant) or bool(set(str(mode.value)) & set("wax+")) for mode in modes)


def _changes(source: str) -> list[str]:
    """Calls that open a file for writing by name, or create, replace or remove one."""
    source_calls = calls(source)
    matches = [call for call in source_calls if _CHANGES.fullmatch(ast.unparse(call.func)) or _opens_to_write(call)]
    replace_calls = [
        call for call in source_calls if isinstance(call.func, ast.Attribute) and call.func.attr == "replace"
    ]
    matches += [call for call in replace_calls if len(call.args) == 1 and not call.keywords]  # a text has two
    writes = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC")
    open_calls = [
        call for call in source_calls if ast.unparse(call.func) == "os.open" and "os.devnull" not in ast.unparse(call)
    ]
    return [
        ast.unparse(call)
        for call in matches
        + [call_text for call_text in open_calls if any(w in ast.unparse(call_text) for w in writes)]
    ]


# Modules that read files directly: of the system or this installation, or made by the process itself.
READS_ITSELF = {
    "contracts/private_folder.py": "opens the file that it locks, without blocking",
    "contracts/regular_file.py": "the one place",
    "health/system_file.py": "the system's files",
    "contracts/guard.py": "likewise",
    "contracts/users_shell.py": "likewise",
    "readers/bounded.py": "likewise",
    "testing/calling.py": "the user's functions, in a process of a run",
    "workers/process/entry.py": "likewise",
    "workers/process/setup.py": "likewise",
    "workers/commands/describe.py": "likewise",
    "report/page.py": "a part of the package",
    "readers/sql.py": "likewise",
    "api/typed_source.py": "cells of a notebook, from memory",
    "contracts/own_packages.py": "likewise",
    "contracts/installed_code.py": "likewise",
    "workers/kinds/growth/tasks/digits.py": "likewise",
    "workers/native/build.py": "the cache of kernels",
    "workers/kinds/trainer/trial.py": "a file that it has written itself",
    "workers/storage/state_bytes.py": "from memory",
    "formats/known/_archive.py": "likewise",
    "workers/kinds/growth/commands/fetch.py": "has just made it",
}
_READS = re.compile(
    r".*\.(read_bytes|read_text)|open|(io|codecs|gzip|bz2|lzma|tarfile)\.open|io\.FileIO|(.*\.)?ZipFile"
    r"|(np|numpy|torch)\.(load|loadtxt|genfromtxt|fromfile|memmap)|mmap\.mmap|linecache\.\w+"
)


def _reads(source: str) -> list[str]:
    """Calls that open a file by name for reading, and could block on a pipe."""
    source_calls = calls(source)
    matches = [call for call in source_calls if _READS.fullmatch(ast.unparse(call.func))]
    matches += [
        call
        for call in source_calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "open"
        and call.args
        and ast.unparse(call.func) != "os.open"
    ]
    open_calls = [ast.unparse(call) for call in source_calls if ast.unparse(call.func) == "os.open"]
    return [ast.unparse(call) for call in matches] + [
        call_text for call_text in open_calls if not any(f in call_text for f in OPEN_SAFELY)
    ]


def _reads_only(source: str) -> list[str]:
    return [call for call in _reads(source) if not _opens_to_write(ast.parse(call).body[0].value)]


# Modules that import by name, and why a received file cannot choose the name; see tests/security.
IMPORTS_BY_NAME = {
    "__init__.py": "names of the package itself",
    "commands/cli.py": "names of commands",
    "report/build.py": "written out",
    "contracts/catalog.py": "only what is a file of that folder of ours",
    "contracts/own_packages.py": "modules of ours, as our own code names them",
    "api/files.py": "the file that `run` is called with",
    "testing/calling.py": "the user's functions, in a process of a run",
    "workers/kinds/trainer/function_loading.py": "the user's function, and its package; `resume`: the copies",
    "workers/user_code/loading.py": "what the user names, and its annotations; `resume`: the copies",
    "workers/kinds/gymnasium/world.py": "likewise; `evaluate`: only what --import names",
    "workers/kinds/trainer/standin/wandb.py": "written out",
}
_IMPORTS = re.compile(
    r"(importlib\.)?import_module|__import__|exec|eval|.*\.exec_module|.*\.load_module|runpy\.\w+|gymnasium\.make(_vec)?"
    r"|load_module|SourceFileLoader|pickle\.loads?|.*\.Unpickler|.*EntryPoint.*|pkgutil\.\w+"
)


def _imports_by_name(source: str) -> list[str]:
    """Calls that execute code by a name or from data."""
    return [
        ast.unparse(call)
        for call in calls(source)
        if _IMPORTS.fullmatch(ast.unparse(call.func)) or "import_module" in map(ast.unparse, call.args)
    ]


@pytest.mark.parametrize(
    ("rule", "allowed_modules"),
    [
        (_changes, WRITES_ITSELF),  # else by `contracts.files_below`, which follows no link out of a received directory
        (_reads_only, READS_ITSELF),  # else by `contracts.regular_file`: no read waits at a pipe, or has no end
        (_imports_by_name, IMPORTS_BY_NAME),
    ],
)
def test_only_listed_modules_access_files_or_import_dynamically(rule, allowed_modules):
    assert {name.removeprefix("esper_ab/") for name in breaking(rule)} == allowed_modules.keys()


def test_no_class_name_is_defined_twice():
    """Across both packages; scripts and tests are exempt."""
    class_counts = Counter(
        node.name
        for path in SOURCES
        for node in nodes(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in class_counts.items() if times > 1] == []
