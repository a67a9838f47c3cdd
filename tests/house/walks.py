"""Count the functions that three jobs enter, and the imports between rooms; see walks.toml.

    PYTHONPATH=tests .venv/bin/python -m house.walks            print the present numbers
    PYTHONPATH=tests .venv/bin/python -m house.walks --write    write them to walks.toml

A job runs twice in one process and is counted the second time, when caches are warm. Generator expressions,
comprehensions and lambdas are not functions of their own. The work of child processes is not counted.
"""

import ast
import math
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from unittest.mock import patch

from click.testing import CliRunner
from house.sources import PACKAGES, ROOT, SOURCES
from support.goldens.golden_experiments import SEED, plan_and_observations
from support.goldens.golden_json import stored
from support.worlds.tensor_world import make_session, quiet

from esper_ab.commands.launch import command
from esper_ab.control import preflight
from esper_ab.verdict.judge import judge

FILE = Path(__file__).with_name("walks.toml")
_OWN_FOLDERS = tuple(f"{ROOT / package}/" for package in PACKAGES)
Numbers = dict[str, dict[str, int]]
_STATE = ("/proc/", "/sys/", "/dev/")  # changing state of the machine, not texts
_CONFIG = """
groups = ["shaped", "fast"]
seeds = 6
margin = 2.0
ppo.lr = 0.001
[group.fast]
ppo.lr = 0.003
[launcher]
name = "local"
"""
_ALTERED = ("--group", "shaped:ppo.gamma=0.97,policy.hidden=64", "--group", "fast:policy.hidden=32")


# --- walks ---------------------------------------------------------------------------------------------------------


@dataclass
class Walk:
    """Functions that were entered, by file and first line, and how often each text was read."""

    entered: set[tuple[str, int]] = field(default_factory=set)
    texts: Counter[str] = field(default_factory=Counter)

    def read_again(self) -> list[str]:
        """Return the texts that were read more than once."""
        return sorted(text for text, times in self.texts.items() if times > 1)

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call of our own code, and the text of a call of `tomllib.loads`."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_OWN_FOLDERS) and not code.co_name.startswith("<"):
            self.entered.add((code.co_filename, code.co_firstlineno))
        elif event == "call" and code is tomllib.loads.__code__:
            self.texts[frame.f_locals["s"]] += 1

    def opened(self, path: object, flags: int) -> None:
        """Note a file that is opened for reading."""
        if isinstance(path, str) and not flags & 3 and not path.startswith((*_STATE, sys.prefix, sys.base_prefix)):
            self.texts[path] += 1


_present: list[Walk] = []  # at most one


@cache
def _hear_of_files() -> None:
    """Add the audit hook, which stays for the life of the process."""

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and _present and isinstance(arguments[2], int):
            _present[0].opened(arguments[0], arguments[2])

    sys.addaudithook(hear)


def walk_of(job: Callable[[], object]) -> Walk:
    """Do `job` twice, and count the second time."""
    _hear_of_files()
    job()
    walk = Walk()
    _present.append(walk)
    threading.setprofile(walk.profile)
    sys.setprofile(walk.profile)
    try:
        job()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        _present.clear()
    return walk


def _launch(*arguments: str) -> None:
    with patch.object(preflight, "_SAY_S", math.inf):  # without progress lines of a busy machine
        result = CliRunner().invoke(command, [*arguments, "--dry-run"], catch_exceptions=False)
    assert result.exit_code == 0, result.output


@cache
def launching() -> Walk:
    """Plan an experiment of two built-in groups."""
    return walk_of(lambda: _launch("--groups", "shaped,simplified"))


def launching_a_file() -> Walk:
    """Plan an experiment that a TOML file describes and flags alter."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiment.toml"
        file.write_text(_CONFIG, encoding="utf-8")
        return walk_of(lambda: _launch(str(file), *_ALTERED))


def judging() -> Walk:
    """Judge the runs of a plan with one interim look."""
    plan, observations = plan_and_observations(stored("plan_one_look"))
    return walk_of(lambda: judge(plan, observations, rng_seed=SEED))


def training() -> Walk:
    """Train a policy of the growth task for one episode."""
    session = make_session()
    episodes = iter(range(2))
    return walk_of(lambda: session.train(next(episodes), quiet, quiet))


# --- rooms ---------------------------------------------------------------------------------------------------------


def rooms() -> dict[str, set[str]]:
    """Return which rooms each room imports: the folders of `esper_ab`, its loose modules together, and `workers`."""
    imported_by_room: dict[str, set[str]] = {}
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        rooms_imported = [room for name in _imported(tree) if (room := _room(name)) is not None]
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        imported_by_room.setdefault(_room(module) or "", set()).update(rooms_imported)
    return {room: imported_rooms - {room} for room, imported_rooms in imported_by_room.items() if imported_rooms}


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield all names that a module imports from, in functions and for types, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (prefix + alias.name for alias in node.names)


def _room(name: str) -> str | None:
    """Return the room of a module, or of a name in one; None if it is not ours."""
    package, *subfolders = name.split(".")
    if package not in PACKAGES:
        return None
    folder = ROOT / package / subfolders[0] if subfolders else ROOT / package
    return f"{package}.{subfolders[0]}" if package == "esper_ab" and folder.is_dir() else package


# --- numbers -------------------------------------------------------------------------------------------------------


def present() -> Numbers:
    """Return today's numbers, by what they count."""
    return {
        "functions": {
            "launch": len(launching().entered),
            "judge": len(judging().entered),
            "episode": len(training().entered),
        },
        "read_again": {"launch": len(launching().read_again()), "file": len(launching_a_file().read_again())},
        "imports": {"between rooms": sum(map(len, rooms().values()))},
    }


_HEAD = """\
# How far a reader walks. A test allows 10 % more. Written by `python -m house.walks --write`, with PYTHONPATH=tests.
"""


def _toml(numbers: Numbers) -> str:
    sections = [
        f"\n[{counted}]\n" + "".join(f'"{name}" = {number}\n' for name, number in number_names.items())
        for counted, number_names in numbers.items()
    ]
    return _HEAD + "".join(sections)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(_toml(present()), encoding="utf-8")
    else:
        sys.stdout.write(_toml(present()))
