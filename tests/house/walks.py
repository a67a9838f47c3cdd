"""How far a reader walks: what three jobs enter of our own code, and how the rooms import each other; walks.toml.

    PYTHONPATH=tests .venv/bin/python -m house.walks            print the present numbers
    PYTHONPATH=tests .venv/bin/python -m house.walks --write    write them as the limits

A job is done twice in one process and counted the second time, when caches are warm. Generator expressions,
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
from house import limits
from support.golden import SEED, promised_and_seen
from support.golden_json import stored
from support.tensor_world import make_session, quiet

from esper_ab.commands.launch import command
from esper_ab.control import preflight
from esper_ab.verdict.judge import judge

FILE = Path(__file__).with_name("walks.toml")
_OWN = tuple(f"{limits.ROOT / package}/" for package in limits.PACKAGES)
_STATE = ("/proc/", "/sys/", "/dev/")  # of the machine, which changes: no texts
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

    def numbers(self) -> dict[str, int]:
        """Return how many functions were entered, in how many files, and how many lines they have."""
        return {
            "functions": len(self.entered), "files": len({path for path, _ in self.entered}),
            "lines": sum(_lengths(path)[first] for path, first in self.entered),
        }  # fmt: skip

    def read_again(self) -> list[str]:
        """Return the texts that were read more than once."""
        return sorted(text for text, times in self.texts.items() if times > 1)

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call of our own code, and the text of a call of `tomllib.loads`."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_OWN) and not code.co_name.startswith("<"):
            self.entered.add((code.co_filename, code.co_firstlineno))
        elif event == "call" and code is tomllib.loads.__code__:
            self.texts[frame.f_locals["s"]] += 1

    def opened(self, path: object, flags: int) -> None:
        """Note a file that is opened for reading."""
        if isinstance(path, str) and not flags & 3 and not path.startswith((*_STATE, sys.prefix, sys.base_prefix)):
            self.texts[path] += 1


@cache
def _lengths(path: str) -> dict[int, int]:
    """Return how many lines each function has, by its first line, which is that of its first decorator."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        min([node.lineno, *(one.lineno for one in node.decorator_list)]): (node.end_lineno or 0) - node.lineno + 1
        for node in functions
    }


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


def _launch(*words: str) -> None:
    with patch.object(preflight, "_SAY_S", math.inf):  # on a crowded machine it would say what it waits for
        done = CliRunner().invoke(command, [*words, "--dry-run"], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@cache
def launching() -> Walk:
    """Plan an experiment of two groups that ship."""
    return walk_of(lambda: _launch("--groups", "shaped,simplified"))


def launching_a_file() -> Walk:
    """Plan an experiment that a TOML file describes and flags alter."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiment.toml"
        file.write_text(_CONFIG, encoding="utf-8")
        return walk_of(lambda: _launch(str(file), *_ALTERED))


def judging() -> Walk:
    """Judge the runs of a plan with one interim look."""
    plan, seen = promised_and_seen(stored("plan_one_look"))
    return walk_of(lambda: judge(plan, seen, rng_seed=SEED))


def training() -> Walk:
    """Train a policy of the growth task for one episode."""
    session, episodes = make_session(), iter(range(2))
    return walk_of(lambda: session.train(next(episodes), quiet, quiet))


# --- rooms ---------------------------------------------------------------------------------------------------------


def rooms() -> dict[str, set[str]]:
    """Return which rooms each room imports: the folders of `esper_ab`, its loose modules together, and `workers`."""
    found: dict[str, set[str]] = {}
    for path, tree in limits.parsed(limits.ROOT):
        imported = [room for name in _imported(tree) if (room := _room(name)) is not None]
        found.setdefault(_room(".".join(path.with_suffix("").parts)) or "", set()).update(imported)
    return {room: others - {room} for room, others in found.items() if others}


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield all names that a module imports from, in functions and for types, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (above + alias.name for alias in node.names)


def _room(name: str) -> str | None:
    """Return the room of a module, or of a name in one; None if it is not ours."""
    package, *inner = name.split(".")
    if package not in limits.PACKAGES:
        return None
    folder = limits.ROOT / package / inner[0] if inner else limits.ROOT / package
    return f"{package}.{inner[0]}" if package == "esper_ab" and folder.is_dir() else package


# --- limits --------------------------------------------------------------------------------------------------------


def present() -> limits.Limits:
    """Return all numbers of today, by unit and job."""
    walks = {"launch": launching().numbers(), "judge": judging().numbers(), "episode": training().numbers()}
    arrows = rooms()
    return {
        **{unit: {job: numbers[unit] for job, numbers in walks.items()} for unit in ("functions", "files", "lines")},
        "read_again": {"launch": len(launching().read_again()), "file": len(launching_a_file().read_again())},
        "house": {"rooms": len(arrows), "arrows": sum(map(len, arrows.values()))},
    }


if __name__ == "__main__":
    what = "How far a reader walks, at most; written by `python -m house.walks --write`."
    limits.main(limits.toml(present(), what), FILE)
