"""Load the experiment that a Python file declares. An error in the file is reported in one line with path and line.

The file is run once, as a separate module, and searched for `create_NAME_experiment()`, `get_experiment()` and
`experiment`. If the file has none of these, it is searched for subclasses of ABExperiment. Imported functions and
classes are ignored.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import msgspec

from esper_ab.api.builder import ExperimentBuilder
from esper_ab.api.declared import ABExperiment
from esper_ab.api.requested import DeclaredExperiment, parse_declaration
from esper_ab.api.running import READING
from esper_ab.contracts.errors import USER_FAULTS, EsperError, UsageError
from esper_ab.contracts.process_exit import PROCESS_EXIT
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.trainer import or_script
from esper_ab.contracts.visible import visible_line
from esper_ab.settings.experiment import AskedExperiment

_FACTORY = re.compile(r"create_\w+_experiment|get_experiment|experiment")
_MESSAGE_CHARS = 500
Made = TypeVar("Made")


def load_declaration(path: Path) -> DeclaredExperiment:
    """Load the experiment that the file `path` declares.

    Raises UsageError, with a one-line message that begins with the path, if the file does not declare exactly one
    experiment.
    """
    with _reading(path):
        experiments = _find_experiments(path)
    # Equal experiments count as one.
    different_experiments = {
        msgspec.json.encode(
            (asked_experiment, declared_experiment.about, declared_experiment.tracking)
        ): f"{symbol} ({asked_experiment.name})"
        for symbol, declared_experiment, asked_experiment in experiments
    }
    if len(different_experiments) > 1:
        experiment_words = ", ".join(different_experiments.values())
        raise UsageError(f"{path} has several experiments: {experiment_words}; put each into a file of its own")
    return experiments[0][1]


def defines_trainer(path: Path) -> bool:
    """Whether a Python file defines `train` but no experiment. The file is not run."""
    _compile(path)  # raises for a file that cannot be read or parsed
    names = {*_bound(ast.parse(read_regular(path)).body)}
    return "train" in names and not any(map(_FACTORY.fullmatch, names))


def called_with_seed(path: Path) -> bool:
    """Whether the function `train` of a Python file takes a seed, so that it is called once per run.

    The file is not run.
    """
    for node in ast.parse(read_regular(path)).body:
        if isinstance(node, ast.FunctionDef) and node.name == "train":
            parameters = node.args
            return any(parameter.arg == "seed" for parameter in (*parameters.args, *parameters.kwonlyargs))
    return False


def _bound(body: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names bound in `body`, which is part of a file, and "experiment" for each subclass of ABExperiment."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield node.name
            if any(ast.unparse(base).endswith("ABExperiment") for base in node.bases):
                yield "experiment"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (import_alias.asname or import_alias.name for import_alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            yield from (name.id for name in names if isinstance(name.ctx, ast.Store))
        else:  # recurse into `if`, `try` and `with`
            for part in ("body", "orelse", "handlers", "finalbody"):
                yield from _bound(getattr(node, part, ()))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Inside this context, let the file import its neighbours, redirect stdout to stderr, and refuse `run_ab_test`."""
    token = READING.set(path.name)
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        READING.reset(token)
        with suppress(ValueError):  # the file may have removed it
            sys.path.remove(str(path.parent.absolute()))


def _find_experiments(path: Path) -> list[tuple[str, DeclaredExperiment, AskedExperiment]]:
    """Build every experiment in the file, and return the name, the declaration and the request of each."""
    code = _compile(path)
    module = ModuleType(f"esper_ab_run.{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    PROCESS_EXIT.needs_teardown = True
    _run_guarded(path, lambda: exec(code, module.__dict__))
    named_values: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    for symbol, value in vars(module).items():
        if isinstance(value, FunctionType | type) and value.__module__ != module.__name__:
            continue  # imported
        if _FACTORY.fullmatch(symbol):
            named_values[symbol] = value
        if isinstance(value, type) and issubclass(value, ABExperiment):
            classes[symbol] = value
    chosen_values = _callable_without_arguments(named_values) or _callable_without_arguments(classes)
    if not chosen_values:
        raise UsageError(_explain_nothing(path, named_values, module))
    return [(symbol, *_make(path, symbol, value)) for symbol, value in chosen_values.items()]


def _callable_without_arguments(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that need no arguments, including those that are not called at all."""
    return {symbol: value for symbol, value in values.items() if not _needed_arguments(value)}


def _compile(path: Path) -> CodeType:
    try:
        return compile(read_regular(path), str(path), "exec")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise UsageError(f"{place}: {error.msg}") from None
    except ValueError as error:  # null bytes
        raise UsageError(f"{path}: not Python: {error}") from None


def _run_guarded(path: Path, action: Callable[[], Made]) -> Made:
    """Return the result of `action`; convert an exception in the file to a one-line UsageError with path and line."""
    try:
        return action()
    except USER_FAULTS as error:
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == str(path)]
        place = f"{path}:{lines[-1]}" if lines else str(path)
        first_line = (str(error).splitlines() or [""])[0]
        if isinstance(error, EsperError):
            message = first_line
        else:
            message = f"{type(error).__name__}: {first_line}".removesuffix(": ")
        if isinstance(error, SystemExit):  # as from argparse, which misses the flags of a script
            message += f"; {or_script(str(path))}"
        raise UsageError(visible_line(f"{place}: {message}", _MESSAGE_CHARS)) from None


def _needed_arguments(value: object) -> tuple[str, ...]:
    """Return the required arguments of a function or class."""
    if not callable(value):
        return ()
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ()
    optional_kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in optional_kinds
    )


def _explain_nothing(path: Path, named_values: dict[str, Any], module: ModuleType) -> str:
    """Explain why the file has no experiment."""
    for symbol, value in named_values.items():
        needed_words = ", ".join(_needed_arguments(value))
        return f"{_place(path, value)}: {symbol} needs {needed_words}, but is called without arguments; add defaults"
    remedy = f"define create_NAME_experiment(), get_experiment() or experiment in it; {or_script(str(path))}"
    imported_names = [name for name in vars(module) if _FACTORY.fullmatch(name) and name != "create_experiment"]
    if imported_names:
        return f"{path}: no experiment of its own (it imports {', '.join(imported_names)}); {remedy}"
    return f"{path}: no experiment; {remedy}"


def _place(path: Path, value: object) -> str:
    """Return the path, with the line number if `value` is a function."""
    if isinstance(value, FunctionType):
        return f"{path}:{value.__code__.co_firstlineno}"
    return str(path)


def _make(path: Path, symbol: str, value: Any) -> tuple[DeclaredExperiment, AskedExperiment]:
    """Build the experiment that is defined by `symbol`, calling `value` if it is callable."""
    place = _place(path, value)
    if inspect.iscoroutinefunction(value):
        raise UsageError(f"{place}: {symbol} is async, but is called without await; define it without async")
    experiment = _run_guarded(path, value) if callable(value) else value
    if isinstance(experiment, ExperimentBuilder):
        raise UsageError(f"{place}: '{symbol}' is not built yet; end it with .build()")
    if not isinstance(experiment, ABExperiment):
        call_words = "()" if callable(value) else ""
        raise UsageError(f"{place}: '{symbol}{call_words}' must be an ABExperiment, not {type(experiment).__name__}")
    try:
        declaration = parse_declaration(experiment, path.parent)
        return declaration, declaration.asked
    except UsageError as error:
        raise UsageError(f"{place}: {symbol}: {error}") from None
