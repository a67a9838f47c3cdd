"""A user's Python trainer: the `Run` it receives, its functions and settings, and checks of what it returns.

Every error is a one-line ValueError that says what was found and what is expected.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import msgspec
import torch

from esper_ab.contracts.plain_values import as_float, expected_instead
from esper_ab.contracts.rng import PathPart, RngPath
from esper_ab.contracts.trainer import TrainerOrder, TrainerSettings, TrainerValue, or_script
from esper_ab.contracts.worker_order import RewardCode
from workers.kinds.trainer.words import seed_at
from workers.storage import state_bytes
from workers.user_code import loading
from workers.user_code.loading import UserCode, fields_of

State = bytes | dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One point of a run: its metrics by name, including the outcome, and the state needed to continue."""

    metrics: Mapping[str, Any]
    state: State


@dataclass(kw_only=True)
class Run:
    """One run, as passed to `train(run)` and `evaluate(run, state)`."""

    Point: ClassVar = Point
    settings: TrainerSettings
    points: int  # number of points that `train` must yield in all
    point: int = 0  # number of the first point to yield
    device: str  # for torch: "cpu", "cuda:0"
    folder: Path  # of this run alone
    eval_episodes: int  # outcomes that `evaluate` may return as a list
    rng: RngPath  # of the run's random numbers
    on_step: Callable[[int], None]  # raises when the run is cancelled
    given: State | None = None
    state_was_read: bool = False

    @property
    def state(self) -> State | None:
        """The state to continue from, as it was yielded; None at the start."""
        self.state_was_read = True
        return self.given

    def seed(self, *address: PathPart) -> int:
        """Return a seed, 0 … 2^31 - 1, for this replicate and address; the seed is the same in every group."""
        path = self.rng
        for part in address:
            path /= part
        return seed_at(path)

    def alive(self, step: int) -> None:
        """Report that the trainer is working, at step `step` of the current point. Raises if the run was cancelled."""
        self.on_step(step)


_PLAIN = (int, float, bool, str, bytes, type(None))


@dataclass(frozen=True)
class PythonTrainer:
    """The functions of a trainer file, and its settings type."""

    train: Callable[[Run], Iterator[Point]]
    evaluate: Callable[[Run, State], Any]
    settings_type: type[TrainerSettings]
    types: Mapping[str, Any]  # of the settings, by name

    def settings(self, values: Mapping[str, TrainerValue]) -> TrainerSettings:
        """Return the settings with `values` replacing defaults; text is converted to the field's type."""
        typed_values = {}
        types = self.types
        for name, value in values.items():
            if name not in types:
                close = difflib.get_close_matches(name, types, n=1)
                if close:
                    hint = f"did you mean {close[0]}?"
                else:
                    hint = f"available settings: {', '.join(types) or 'none'}"
                raise ValueError(f"no setting trainer.{name}; {hint}")
            try:
                typed_values[name] = msgspec.convert(value, types[name], strict=not isinstance(value, str))
            except msgspec.ValidationError as error:
                expected = str(error).split(", got")[0].split(" - at")[0].replace("`", "")
                raise ValueError(f"trainer.{name}: {expected[0].lower()}{expected[1:]}, not {value!r}") from None
        try:
            typed_settings = msgspec.convert(typed_values, self.settings_type)
        except msgspec.ValidationError as error:
            raise ValueError(f"trainer settings: {error}") from None
        flat(typed_settings)
        return typed_settings


def flat(settings: TrainerSettings) -> dict[str, TrainerValue]:
    """Return the settings by name; ValueError if a value is not a boolean, number or text."""
    values: dict[str, TrainerValue] = msgspec.to_builtins(settings)
    for name, value in values.items():
        if not isinstance(value, bool | int | float | str):
            raise ValueError(f"trainer.{name} is {value!r}; a setting is true or false, a number or text")
        if expected := expected_instead(value):
            raise ValueError(f"trainer.{name}: expected {expected}, not {value!r}")
    return values


def load(path: str) -> tuple[PythonTrainer, UserCode]:
    """Execute the file at `path`; return the trainer that the file defines, and the file's code."""
    subject = f"trainer {Path(path).name}"
    try:
        code = loading.load(subject, path)
    except ValueError as error:
        if isinstance(error.__cause__, SystemExit):  # as from argparse, which misses the flags of a script
            raise ValueError(f"{error}; {or_script(path)}") from None
        raise
    if not callable(getattr(code.module, "evaluate", None)):
        raise ValueError(f"{subject}: no function 'evaluate', which a file with train(run) needs; {or_script(path)}")
    return _read_trainer(code.module, subject), code


def as_planned(order: TrainerOrder, experiment_dir: Path) -> PythonTrainer:
    """Execute the copy that was made for the plan; ValueError if the copy is unusable or has changed."""
    subject = f"trainer {Path(order.reference).name}"  # of the whole file
    reference = f"{order.reference}:"  # of the whole file
    code = RewardCode(reference=reference, folder=order.folder, file=order.files[0], sha256=order.sha256)
    return _read_trainer(loading.load_planned(subject, code, experiment_dir), subject)


def _read_trainer(module: ModuleType, subject: str) -> PythonTrainer:
    sys.modules[module.__name__] = module  # where pickle looks names up
    train = loading.function_of(subject, module, "train", "(run)")
    evaluate_function = loading.function_of(subject, module, "evaluate", "(run, state)")
    if not inspect.isgeneratorfunction(inspect.unwrap(train)):
        raise ValueError(
            f"{subject}: train(run) yields no points; at the end of each, yield run.Point(metrics, state=…)"
        )
    settings = getattr(module, "Settings", TrainerSettings)
    if not (isinstance(settings, type) and issubclass(settings, TrainerSettings)):
        raise ValueError(f"{subject}: Settings must be a class Settings(esper_ab.TrainerSettings)")
    fields = fields_of(settings, module, subject)
    required_names = [field.name for field in fields if field.required]
    if required_names:
        raise ValueError(f"{subject}: Settings.{required_names[0]} has no default")
    return PythonTrainer(train, evaluate_function, settings, {field.name: field.type for field in fields})


def number(value: Any, subject: str) -> float:
    """Convert a number to a float, whatever library its type comes from; it may be NaN or infinite. True is 1, False 0.

    Raises ValueError, which names `subject`, if it is not a number.
    """
    if isinstance(value, str | bytes):
        raise ValueError(f"{subject} is {value!r}, not a number")
    try:
        return as_float(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{subject} is {type(value).__name__}, not a number") from None


def metrics_of(point: Any, outcome: str) -> dict[str, float]:
    """Return the numbers of a point, including the outcome."""
    if not isinstance(point, Point):
        raise ValueError(f"train(run) yielded {type(point).__name__}; yield run.Point(metrics, state=…)")
    metrics = {name: number(value, f"metric {name!r} of a point") for name, value in point.metrics.items()}
    if outcome not in metrics:
        names = ", ".join(metrics) or "nothing"
        raise ValueError(
            f"a point has no metric {outcome!r}, the outcome as it is measured while training; it has {names}; "
            "add it, or name another as higher or lower"
        )
    return metrics


def next_point(points: Iterator[Point], number: int, run: Run, outcome: str) -> tuple[dict[str, float], bytes]:
    """Advance a trainer to point `number`; return that point's numbers and its state."""
    try:
        point = next(points)
    except StopIteration:
        complaint = f"train(run) ended before point {number} of {run.points}; it must yield run.points points"
        raise ValueError(complaint) from None
    return metrics_of(point, outcome), saved(point.state)


def outcomes_of(returned_outcomes: Any, outcome: str) -> list[float]:
    """Return the outcomes of an evaluation.

    `evaluate` returns one outcome or a list; each outcome is a number, or a dict with the outcome's name.
    """
    episodes = returned_outcomes if isinstance(returned_outcomes, list | tuple) else [returned_outcomes]
    outcomes = []
    for value in episodes:
        if isinstance(value, Mapping):
            if outcome not in value:
                raise ValueError(f"evaluate returned {', '.join(map(str, value)) or 'nothing'}, but no {outcome!r}")
            value = value[outcome]
        outcomes.append(number(value, f"{outcome!r}, as evaluate returned it,"))
    if not outcomes:
        raise ValueError("evaluate returned an empty list, so there is no outcome")
    return outcomes


def saved(state: Any) -> bytes:
    """Return a state as bytes that cannot execute code."""
    if not isinstance(state, bytes | dict):
        raise ValueError(
            f"the state of a point is {type(state).__name__}; it must be bytes, or a dict of tensors, "
            "numbers, text, lists and dicts"
        )
    _check_plain(state, "state")
    return state_bytes.to_bytes({"state": state})


def restored(data: bytes) -> State:
    """Return the state that `saved` serialised."""
    state: State = state_bytes.from_bytes(data)["state"]
    return state


def _check_plain(value: Any, place: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check_plain(key, f"the key {key!r} of {place}")
            _check_plain(item, f"{place}[{key!r}]")
    elif type(value) in (list, tuple):
        for index, item in enumerate(value):
            _check_plain(item, f"{place}[{index}]")
    elif type(value) not in _PLAIN and not isinstance(value, torch.Tensor):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if kind.startswith("numpy."):
            remedy = "torch.from_numpy(array) or float(number)"
        else:
            remedy = "tensors and builtins"
        raise ValueError(f"{place} is {kind}, which cannot be restored without running code; use {remedy}")
