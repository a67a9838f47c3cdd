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
Value = str | float
ByTask = Value | Mapping[str, Value]  # one value for all tasks, or a value by task


def scales_of(
    tasks: Sequence[str],
    margin: ByTask,
    *,
    better: ByTask = "higher",
    unit: ByTask = "",
    label: str = "outcome",
    worst: ByTask = "",
) -> tuple[Scale, ...]:
    """Return one scale per task. Raises UsageError if a task is missing, unknown or has an invalid value."""
    margins = _parse_by_task("margin", tasks, margin, _read_margin)
    directions = _parse_by_task("better", tasks, better, _read_direction, default="higher")
    units = _parse_by_task("unit", tasks, unit, _read_unit, default="")
    worst_by_task: dict[str, float] = {}
    if worst != "":
        worst_by_task = _parse_by_task("worst", tasks, worst, _read_worst)
    return tuple(
        Scale(
            task=task,
            outcome=_make_measure(label, units[task], directions[task]),
            margin=margins[task],
            worst=worst_by_task.get(task),
        )
        for task in tasks
    )


def with_best(scales: Sequence[Scale], best: ByTask) -> tuple[Scale, ...]:
    """Return the scales with their best possible outcomes; UsageError if a value is invalid, or not better than the
    worst.
    """
    best_by_task = _parse_by_task("best", [scale.task for scale in scales], best, _read_best)
    scales_with_best = []
    for scale in scales:
        value = best_by_task[scale.task]
        _check_ends(scale, value)
        end = "low" if scale.outcome.better == "lower" else "high"
        outcome = msgspec.structs.replace(scale.outcome, **{end: value})
        scales_with_best.append(msgspec.structs.replace(scale, outcome=outcome))
    return tuple(scales_with_best)


def _make_measure(label: str, unit: str, better_direction: str) -> Measure:
    """Return the outcome of a task; raises UsageError if its label or unit is too long or not printable."""
    fields = {"name": "outcome", "label": label, "unit": unit, "better": better_direction}
    if unit == "%":
        fields["difference_unit"] = "points"
    try:
        return msgspec.convert(fields, Measure)
    except msgspec.ValidationError:
        values = f"unit '{visible_line(unit, LABEL_CHARS)}', label '{visible_line(label, LABEL_CHARS)}'"
        raise UsageError(
            f"{values}: expected a unit of at most {UNIT_CHARS} characters and a label of 1 to {LABEL_CHARS}, both "
            f"{PRINTABLE_WORDS}"
        ) from None


def read_by_task(text: str) -> ByTask:
    """Parse one value for all tasks, such as "2", or one value per task, such as "digits=2,CartPole-v1=25"."""
    if "=" not in text:
        return text
    values: dict[str, str] = {}
    for part in text.split(","):
        task, _, value = (piece.strip() for piece in part.rpartition("="))
        if not (task and value):
            raise UsageError(f"{text!r}: expected one value for all tasks, or TASK=VALUE,TASK=VALUE")
        if task in values:
            raise UsageError(f"{text!r}: {task} occurs twice")
        values[task] = value
    return values


def ranges_of(tasks: Sequence[str], ranges: ByTask) -> dict[str, tuple[float, float]]:
    """Return the worst and the target outcome of every task, from text such as "0..100"; {} if there is no text."""
    if not ranges:
        return {}
    return _parse_by_task("scores", tasks, ranges, _read_range)


def _parse_by_task(
    key: str, tasks: Sequence[str], given_values: ByTask, parse: Callable[[Value], T], default: T | None = None
) -> dict[str, T]:
    """Return the value of every task, parsed; a task that is not in `given_values` has the value `default`.

    Raises UsageError for an unknown task, and for a task without a value if `default` is None.
    """
    if not isinstance(given_values, Mapping):
        return dict.fromkeys(tasks, parse(given_values))
    for task in given_values:
        if task not in tasks:
            raise UsageError(f"{key}: no task {task!r}; {did_you_mean(task, filter(None, tasks))}")
    values: dict[str, T] = {}
    lacking_tasks: list[str] = []
    for task in tasks:
        value = parse(given_values[task]) if task in given_values else default
        if value is None:
            lacking_tasks.append(task)
        else:
            values[task] = value
    if lacking_tasks:
        raise UsageError(f"{key}: no value for task {lacking_tasks[0]!r}")
    return values


def _read_margin(value: Value) -> float:
    margin = _number(value)
    if not SMALLEST_MARGIN <= margin <= LARGEST_OUTCOME:
        raise UsageError(f"margin {value}: expected a positive number, the smallest difference worth acting on")
    return margin


def _read_worst(value: Value) -> float:
    worst_value = _number(value)
    if not countable(worst_value):
        raise UsageError(f"worst {value}: expected a number, the outcome that stands for a lost run")
    return worst_value


def _read_best(value: Value) -> float:
    best_value = _number(value)
    if not countable(best_value):
        raise UsageError(f"best {value}: expected a number, the best possible outcome")
    return best_value


def _check_ends(scale: Scale, best: float) -> None:
    """Raise UsageError if the best possible outcome is not better than the worst one."""
    if scale.worst is None or scale.outcome.sign * (best - scale.worst) > 0.0:
        return
    direction = scale.outcome.better
    raise UsageError(
        f"worst {scale.worst:g}, best {best:g}: where {direction} is better, the best possible outcome must be "
        f"{direction} than the worst one"
    )


def _read_unit(value: Value) -> str:
    if not isinstance(value, str):
        raise UsageError(f"unit {value!r}: expected a text, as in %")
    return value


def _read_direction(value: Value) -> str:
    if value not in ("higher", "lower"):
        raise UsageError(f"better {value!r}: expected 'higher' or 'lower', to say which outcomes are better")
    return str(value)


def _read_range(value: Value) -> tuple[float, float]:
    low, dots, high = str(value).partition("..")
    worst_value = _number(low)
    target = _number(high)
    if not (dots and countable(worst_value) and countable(target) and abs(target - worst_value) >= SMALLEST_MARGIN):
        raise UsageError(f"scores {value!r}: expected WORST..TARGET, two different finite numbers, as in 0..100")
    return worst_value, target


def _number(value: Value) -> float:
    """Return the number; NaN if it is not one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
