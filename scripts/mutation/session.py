"""Collects a room's unit tests once, then forks a child per mutant with the mutated function in place.

Nothing is written to the tree. A mutant in a function body is patched into the imported functions. A mutant that acts
during import (a constant, a default, a function called by an import) gets a child that re-imports everything, which
takes a few seconds. Tests that never enter the function are not run.
"""

from __future__ import annotations

import gc
import importlib.machinery
import mmap
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from _pytest.warnings import catch_warnings_for_item

from mutation.child import CrashedError, TimedOutError, in_child
from mutation.drawn import KILLED, NOT_REACHED, ROOT, SURVIVED, Located, Mutant

_OPTIONS = (
    "-p",
    "no:cacheprovider",
    "-o",
    "timeout=0",
    "-o",
    "faulthandler_timeout=0",
    "-m",
    "not slow",
    "-q",
    "-W",
    "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning",
)
_CPU_S, _TIMES = 3.0, 4.0  # limit of a test: these seconds, plus this many times its seconds without a mutant
_LONGEST_S = 600.0
_at_work = mmap.mmap(-1, 4096)  # the test that a child runs, for its parent to read if the child ends
Function = tuple[str, str]  # file and qualified name, without what is inside a function


@dataclass
class Seen:
    """A test's result without mutants: whether it passed, its seconds, and the functions it entered."""

    passed: bool
    seconds: float
    entered: set[Function]


@dataclass
class Room:
    """A pytest plugin that tries `mutants` after collection and calls `tell` with each result."""

    mutants: list[tuple[Mutant, Located]]
    tell: Callable[[Mutant], None]
    say: Callable[[str], None]
    late: list[tuple[Mutant, Located]] = field(default_factory=list)  # those that need an import of their own
    seen: dict[str, Seen] = field(default_factory=dict)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        _same_examples_always()
        self._called = _Called()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        self._called.begin()

    def pytest_collection_finish(self) -> None:
        self._imported = self._called.end()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        self._items = {item.nodeid: item for item in session.items}
        functions = _functions()
        for file in dict.fromkeys(item.path for item in session.items):
            items = [item for item in session.items if item.path == file]
            try:
                answer = in_child(lambda items=items: list(_look(items)), _LONGEST_S)
            except (CrashedError, TimedOutError):
                self.say(f"left out, for it crashes without any mutant: {file.relative_to(ROOT)}")
                continue
            for name, is_passed, seconds, entered_functions in answer:
                self.seen[name] = Seen(
                    is_passed, seconds, {(path, function_name) for path, function_name in entered_functions}
                )
        self.say(
            f"{sum(seen_test.seconds for seen_test in self.seen.values()):.0f} s without a mutant: {len(self.seen)} "
            "tests"
        )
        for name in (name for name, seen_test in self.seen.items() if not seen_test.passed):
            self.say(f"left out, for it fails without any mutant: {name}")
        for mutant, place in self.mutants:
            self._try(mutant, place, functions)
        return True

    def _try(self, mutant: Mutant, place: Located, functions: dict[Function, list[types.FunctionType]]) -> None:
        outermost_function = (str(place.path), mutant.function.partition(".<locals>")[0])
        matching_functions = functions.get(outermost_function, [])
        if not place.is_late or not matching_functions or outermost_function in self._imported:
            self.late.append((mutant, place))
            return
        names = self._order(mutant, place, outermost_function)
        if not names:
            mutant.result = NOT_REACHED
            mutant.by = ""
        else:
            decide(mutant, lambda: self._run(names, place, matching_functions))
        if mutant.result == "":  # it cannot be put in place
            self.late.append((mutant, place))
        else:
            self.tell(mutant)

    def _order(self, mutant: Mutant, place: Located, function: Function) -> list[str]:
        """Return the tests in this order: the last detecting test, tests of the module, the rest; fast tests first."""
        names = [name for name, seen_test in self.seen.items() if seen_test.passed and function in seen_test.entered]
        mirrored_file = str(mirrored_test(place.path).relative_to(ROOT))
        return sorted(
            names, key=lambda name: (name != mutant.by, not name.startswith(mirrored_file), self.seen[name].seconds)
        )

    def _run(self, names: list[str], place: Located, functions: list[types.FunctionType]) -> str | None:
        """In a child: apply the mutant and return the failing test; None if it cannot be applied."""
        try:
            for function in functions:
                function.__code__ = _code_of(place, function.__code__.co_qualname)
        except ValueError:  # a different closure
            return None
        with _own_cache():
            return next(_failed([self._items[name] for name in names], self.seen), "")


def decide(mutant: Mutant, work: Callable[[], str | None]) -> None:
    """Store in the mutant the result of `work`, which returns the failing test, or "" if none failed.

    A test that does not end, or ends the process, counts as failed.
    """
    _begun("")
    try:
        failed_test = in_child(work, _LONGEST_S)
    except (CrashedError, TimedOutError):
        failed_test = _at_work[:].rstrip(b"\0").decode() or "import"
    if failed_test is not None:
        mutant.result, mutant.by = (KILLED, failed_test) if failed_test else (SURVIVED, "")


def run_late(mutant: Mutant, place: Located, files: list[Path], seen_tests: dict[str, Seen]) -> None:
    """Re-import everything with the mutant; try the file of the last detecting test first, then the rest."""
    first_files = [ROOT / mutant.by.partition("::")[0]] if "::" in mutant.by else []
    mirrored_file = mirrored_test(place.path)
    first_files = [file for file in first_files if file in files] or [file for file in files if file == mirrored_file]
    for batch in (first_files, [file for file in files if file not in first_files]):
        names = {name for name, run in seen_tests.items() if run.passed and ROOT / name.partition("::")[0] in batch}
        if names:
            tests = {name: seen_tests[name] for name in names}
            killer = mutant.by
            decide(mutant, lambda batch=batch, tests=tests, killer=killer: _anew(place, batch, tests, killer))
        if mutant.result == KILLED:
            return


def _anew(place: Located, files: list[Path], tests: dict[str, Seen], first_test: str) -> str:
    """In a child that has imported none of the packages: return the test that fails with the mutant, or ""."""
    load_code = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> Any:
        if Path(loader.get_filename(name)) == place.path:
            return _module_code(place)
        return load_code(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code
    plugin = _Once(tests, first_test)
    run_tests(files, plugin)
    return plugin.failed if plugin.ran else "import"


class _Once:
    """A pytest plugin that runs `tests` until one fails."""

    def __init__(self, tests: dict[str, Seen], first: str) -> None:
        self._tests = tests
        self._first = first
        self.failed = ""
        self.ran = False

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        _same_examples_always()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.testsfailed:
            items = [item for item in session.items if item.nodeid in self._tests]
            self.failed = next(_failed(sorted(items, key=lambda item: item.nodeid != self._first), self._tests), "")
            self.ran = True
        return True


def _same_examples_always() -> None:
    hypothesis.settings.register_profile("mutants", hypothesis.settings(), derandomize=True, database=None)
    hypothesis.settings.load_profile("mutants")


def mirrored_test(module: Path) -> Path:
    relative_path = module.relative_to(ROOT)
    return ROOT / "tests" / "unit" / relative_path.with_name(f"test_{relative_path.name}")


def run_tests(files: list[Path], plugin: object) -> None:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        pytest.main([*_OPTIONS, f"--basetemp={folder}/tmp", *map(str, files)], plugins=[plugin])


def _look(items: list[pytest.Item]) -> Iterator[tuple[str, bool, float, list[Function]]]:
    """Run the tests in a child without a mutant; fixtures entered for one test may serve its whole file."""
    results = []
    setup_functions = set()
    with _own_cache():
        for item, next_item in zip(items, [*items[1:], None], strict=True):
            call_recorder = _Called()
            begin_s = time.process_time()
            call_recorder.begin()
            reports = _reports(item, next_item)
            entered_functions = call_recorder.end()
            setup_functions |= call_recorder.in_setup
            passed = not any(report.failed for report in reports)
            results.append((item.nodeid, passed, time.process_time() - begin_s, entered_functions))
    for name, passed, seconds, entered_functions in results:
        yield name, passed, seconds, sorted(entered_functions | setup_functions)


def _reports(item: pytest.Item, next_item: pytest.Item | None) -> list[pytest.TestReport]:
    """Run a test with the filters of warnings that pytest gives it, which `runtestprotocol` alone does not apply."""
    with catch_warnings_for_item(config=item.config, ihook=item.ihook, when="runtest", item=item):
        return runtestprotocol(item, log=False, nextitem=next_item)


def _failed(items: list[pytest.Item], seen_tests: dict[str, Seen]) -> Iterator[str]:
    """In a child: return the failing tests, each run with its own CPU-time limit."""
    for item, next_item in zip(items, [*items[1:], None], strict=True):
        _begun(item.nodeid)
        limit = time.process_time() + _CPU_S + _TIMES * seen_tests[item.nodeid].seconds
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, resource.RLIM_INFINITY))
        if any(report.failed for report in _reports(item, next_item)):
            yield item.nodeid


def _begun(test: str) -> None:
    _at_work[:] = test.encode().ljust(len(_at_work), b"\0")


class _own_cache:
    """Use a private folder for on-disk caches, so that no other process reads what a mutant computed."""

    def __enter__(self) -> None:
        self._folder = os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=os.environ.get("XDG_CACHE_HOME"))

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class _Called:
    """The packages' functions that are entered. `in_setup`: entered before the test itself."""

    def __init__(self) -> None:
        self._codes: set[types.CodeType] = set()
        self.in_setup: set[Function] = set()

    def begin(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: types.FrameType, event: str, _: object) -> None:
        if event == "call":
            self._codes.add(frame.f_code)
            if frame.f_code.co_name == "pytest_runtest_call":
                self.in_setup |= _names(self._codes)

    def end(self) -> set[Function]:
        sys.setprofile(None)
        threading.setprofile(None)
        return _names(self._codes)


def _names(codes: set[types.CodeType]) -> set[Function]:
    our_folders = tuple(str(ROOT / package) for package in ("esper_ab", "workers"))
    names = {(code.co_filename, code.co_qualname.partition(".<locals>")[0]) for code in codes}
    return {function for function in names if function[0].startswith(our_folders)}


def _functions() -> dict[Function, list[types.FunctionType]]:
    functions: dict[Function, list[types.FunctionType]] = {}
    for candidate in gc.get_objects():
        if type(candidate) is types.FunctionType and "<locals>" not in candidate.__code__.co_qualname:
            functions.setdefault((candidate.__code__.co_filename, candidate.__code__.co_qualname), []).append(candidate)
    return functions


def _module_code(place: Located) -> types.CodeType:
    return compile(place.tree, str(place.path), "exec", dont_inherit=True)


def _code_of(place: Located, name: str) -> types.CodeType:
    """Return the mutated code of a function; if a name occurs several times, the last one counts, as in Python."""
    waiting_code = [_module_code(place)]
    codes = []
    while waiting_code:
        code = waiting_code.pop(0)
        codes += [code] if code.co_qualname == name else []
        waiting_code += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return codes[-1]
