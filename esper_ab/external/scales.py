"""In which unit the outcomes of a task are, which direction is better, and how large a difference matters. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import LARGEST_OUTCOME, SMALLEST_MARGIN, Measure, countable
from esper_ab.verdict.scale import Scale

T = TypeVar("T")
msgspec.json.Decoder(Measure)  # now, in one thread: tests/house/test_decoders.py
Told = str | float | Mapping[str, str | float]  # for all tasks, or by task


def scales_of(
    tasks: Sequence[str], margin: Told, *, better: Told = "higher", unit: Told = "", label: str = "outcome",
    worst: Told = "",
) -> tuple[Scale, ...]:  # fmt: skip
    """One per task. UsageError where a task is left out, unknown, or has a value that means nothing."""
    margins = _by_task("margin", tasks, margin, _size)
    directions = _by_task("better", tasks, better, _direction, otherwise="higher")
    units = _by_task("unit", tasks, unit, _unit, otherwise="")
    worsts = _by_task("worst", tasks, worst, _worst) if worst != "" else {}
    found = []
    for task in tasks:
        told = {"name": "outcome", "label": label, "unit": units[task], "better": directions[task]}
        if units[task] == "%":
            told["difference_unit"] = "points"
        try:
            outcome = msgspec.convert(told, Measure)
        except msgspec.ValidationError as error:
            raise UsageError(f"unit {units[task]!r}, label {label!r}: {error}") from None
        found.append(Scale(task=task, outcome=outcome, margin=margins[task], worst=worsts.get(task)))
    return tuple(found)


def told_by_task(text: str) -> Told:
    """ "2" for all tasks, or "digits=2,CartPole-v1=25"."""
    if "=" not in text:
        return text
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        if not (name and value):
            raise UsageError(f"{text!r}: one value for all tasks, or TASK=VALUE,TASK=VALUE")
        if name in found:
            raise UsageError(f"{text!r}: {name} is named twice")
        found[name] = value
    return found


def ranges_of(tasks: Sequence[str], told: Told) -> dict[str, tuple[float, float]]:
    """Worst and target outcome of every task, from "0..100"; {} for ""."""
    return _by_task("scores", tasks, told, _range) if told else {}


def _number(value: str | float) -> float:
    """Return NaN for what is no number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _range(value: str | float) -> tuple[float, float]:
    worst, dots, target = str(value).partition("..")
    found = _number(worst), _number(target)
    if not dots or not all(map(countable, found)) or abs(found[1] - found[0]) < SMALLEST_MARGIN:
        raise UsageError(f"scores {value!r}: WORST..TARGET, two different finite numbers, as in 0..100")
    return found


def _by_task(
    key: str, tasks: Sequence[str], told: Told, parse: Callable[[str | float], T], otherwise: T | None = None
) -> dict[str, T]:
    if not isinstance(told, Mapping):
        return dict.fromkeys(tasks, parse(told))
    named = ", ".join(tasks) if tasks != ("",) else "none"
    for task in told:
        if task not in tasks:
            raise UsageError(f"{key}: no task {task!r}; the tasks are {named}")
    found = {task: parse(told[task]) if task in told else otherwise for task in tasks}
    lacking = [task for task, value in found.items() if value is None]
    if lacking:
        raise UsageError(f"{key}: nothing is said of the task {lacking[0]!r}")
    return {task: value for task, value in found.items() if value is not None}


def _size(value: str | float) -> float:
    found = _number(value)
    if not SMALLEST_MARGIN <= found <= LARGEST_OUTCOME:
        raise UsageError(f"margin {value}: a positive number, the smallest difference worth acting on")
    return found


def _worst(value: str | float) -> float:
    found = _number(value)
    if not countable(found):
        raise UsageError(f"worst {value}: a number, the outcome that stands for a lost run")
    return found


def _unit(value: str | float) -> str:
    if not isinstance(value, str):
        raise UsageError(f"unit {value!r}: a text, as in %")
    return value


def _direction(value: str | float) -> str:
    if value not in ("higher", "lower"):
        raise UsageError(f"better {value!r}: which outcomes are better, higher or lower")
    return str(value)
