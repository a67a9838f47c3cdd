"""The unit of the outcomes of a task, which direction is better, and how large a difference matters. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import (
    LABEL_CHARS,
    LARGEST_OUTCOME,
    PRINTABLE_WORDS,
    SMALLEST_MARGIN,
    UNIT_CHARS,
    Measure,
    countable,
)
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import did_you_mean
from esper_ab.verdict.scale import Scale

T = TypeVar("T")
msgspec.json.Decoder(Measure)  # built now, in one thread: tests/house/test_decoders.py
Told = str | float | Mapping[str, str | float]  # for all tasks, or by task


def scales_of(
    tasks: Sequence[str],
    margin: Told,
    *,
    better: Told = "higher",
    unit: Told = "",
    label: str = "outcome",
    worst: Told = "",
) -> tuple[Scale, ...]:
    """Return one scale per task. Raises UsageError if a task is missing, unknown or has an invalid value."""
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
        except msgspec.ValidationError:
            shown = f"unit '{visible_line(units[task], LABEL_CHARS)}', label '{visible_line(label, LABEL_CHARS)}'"
            raise UsageError(
                f"{shown}: expected a unit of at most {UNIT_CHARS} characters and a label of 1 to {LABEL_CHARS}, both "
                f"{PRINTABLE_WORDS}"
            ) from None
        found.append(Scale(task=task, outcome=outcome, margin=margins[task], worst=worsts.get(task)))
    return tuple(found)


def told_by_task(text: str) -> Told:
    """Parse one value for all tasks, such as "2", or one value per task, such as "digits=2,CartPole-v1=25"."""
    if "=" not in text:
        return text
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        if not (name and value):
            raise UsageError(f"{text!r}: expected one value for all tasks, or TASK=VALUE,TASK=VALUE")
        if name in found:
            raise UsageError(f"{text!r}: {name} occurs twice")
        found[name] = value
    return found


def ranges_of(tasks: Sequence[str], told: Told) -> dict[str, tuple[float, float]]:
    """Return the worst and the target outcome of every task, from text such as "0..100"; {} if there is no text."""
    return _by_task("scores", tasks, told, _range) if told else {}


def _number(value: str | float) -> float:
    """Return the number; NaN if it is not one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _range(value: str | float) -> tuple[float, float]:
    worst, dots, target = str(value).partition("..")
    found = _number(worst), _number(target)
    if not dots or not all(map(countable, found)) or abs(found[1] - found[0]) < SMALLEST_MARGIN:
        raise UsageError(f"scores {value!r}: expected WORST..TARGET, two different finite numbers, as in 0..100")
    return found


def _by_task(
    key: str, tasks: Sequence[str], told: Told, parse: Callable[[str | float], T], otherwise: T | None = None
) -> dict[str, T]:
    if not isinstance(told, Mapping):
        return dict.fromkeys(tasks, parse(told))
    for task in told:
        if task not in tasks:
            raise UsageError(f"{key}: no task {task!r}; {did_you_mean(task, filter(None, tasks))}")
    found = {task: parse(told[task]) if task in told else otherwise for task in tasks}
    lacking = [task for task, value in found.items() if value is None]
    if lacking:
        raise UsageError(f"{key}: no value for task {lacking[0]!r}")
    return {task: value for task, value in found.items() if value is not None}


def _size(value: str | float) -> float:
    found = _number(value)
    if not SMALLEST_MARGIN <= found <= LARGEST_OUTCOME:
        raise UsageError(f"margin {value}: expected a positive number, the smallest difference worth acting on")
    return found


def _worst(value: str | float) -> float:
    found = _number(value)
    if not countable(found):
        raise UsageError(f"worst {value}: expected a number, the outcome that stands for a lost run")
    return found


def _unit(value: str | float) -> str:
    if not isinstance(value, str):
        raise UsageError(f"unit {value!r}: expected a text, as in %")
    return value


def _direction(value: str | float) -> str:
    if value not in ("higher", "lower"):
        raise UsageError(f"better {value!r}: expected 'higher' or 'lower', to say which outcomes are better")
    return str(value)
