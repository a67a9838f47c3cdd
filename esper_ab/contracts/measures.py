"""Declarations of a task's measures: the outcome that decides comparisons, and other recorded numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from esper_ab.contracts.records import Number
from esper_ab.contracts.settings import Settings

MeasureName = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]{0,63}\Z")]
_PRINTABLE = r"\A[^\x00-\x1f\x7f$]*\Z"  # a dollar sign would start a formula in figures
PRINTABLE_WORDS = "without control characters and without $"
LABEL_CHARS = 60
UNIT_CHARS = 20
Words = Annotated[str, Meta(min_length=1, max_length=LABEL_CHARS, pattern=_PRINTABLE)]
Unit = Annotated[str, Meta(max_length=UNIT_CHARS, pattern=_PRINTABLE)]
# Names of columns and numbers that every experiment has; a measure with such a name would hide the column or number.
RESERVED = frozenset(
    (
        "run",
        "group_id",
        "replicate",
        "reward_mode",
        "controller",
        "lane",
        "episode",
        "recorded_at",
        "env",
        "device",
        "steps",
        "outcome",
        "greedy",
        "evaluated",
        "reward_sum",
        "failed",
        "total_s",
        "train_s",
        "validate_s",
        "decide_s",
        "update_s",
        "digest",
        "actions",
        "rewards",
        "policy_file",
        "entropy_change",
        "training_area",
    )
)


# Outcomes, margins and scores are summed, squared, multiplied and divided by each other. Within these bounds no result
# overflows; the largest single-precision number is 3e38.
LARGEST_OUTCOME = 1e40  # of an outcome, an end of its range, or a margin, in absolute value
SMALLEST_MARGIN = 1e-30  # of a margin, or of the distance from the worst to the target
# The smallest difference in outcome worth acting on.
Margin = Annotated[float, Meta(ge=SMALLEST_MARGIN, le=LARGEST_OUTCOME)]

_PLURALS = ("points", "margins")  # units of differences that are words; symbols have no plural


def is_printable(text: str) -> bool:
    """Whether a label or a unit may consist of these characters."""
    return re.fullmatch(_PRINTABLE, text) is not None


def countable(number: float) -> bool:
    """Whether `number` is a valid outcome: finite, and at most LARGEST_OUTCOME in absolute value."""
    return abs(number) <= LARGEST_OUTCOME


class Measure(Settings, frozen=True, kw_only=True):
    """A number that is recorded per environment and episode, with its name and unit for texts."""

    name: MeasureName  # key in records and of a column: "held_out_accuracy"
    label: Words  # in sentences, tables and axes: "held-out accuracy"
    unit: Unit = ""  # of a value: "%", "J"; "": none
    difference_unit: Unit = ""  # of a difference; "": "points" of a percentage, else as `unit`
    better: Literal["higher", "lower", "neither"] = "neither"
    low: Number | None = None  # least possible value; None: none
    high: Number | None = None  # greatest possible value

    @property
    def apart(self) -> str:
        """The unit of a difference. Percentages differ by points, because "2 %" would read as a share of the value."""
        return self.difference_unit or ("points" if self.unit == "%" else self.unit)

    @property
    def sign(self) -> float:
        """-1.0 if lower is better, else 1.0."""
        return -1.0 if self.better == "lower" else 1.0

    def value(self, number: str) -> str:
        """Write a formatted value with its unit: "71.20 %"."""
        return f"{number} {self.unit}".rstrip()

    def difference(self, number: str) -> str:
        """Write a formatted difference with its unit: "1.20 points", "1 point"."""
        unit = self.apart
        if number == "1" and unit in _PLURALS:
            unit = unit.removesuffix("s")
        return f"{number} {unit}".rstrip()

    @property
    def title(self) -> str:
        """Label and unit, as on an axis or in a table: "held-out accuracy, %"."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def best_possible(self) -> float | None:
        """The better end of the declared range; None if it is open at that end."""
        return self.low if self.better == "lower" else self.high

    def best(self, values: Sequence[float]) -> float:
        """Return the best of `values` in the declared direction."""
        return min(values) if self.better == "lower" else max(values)

    def worst(self, values: Sequence[float]) -> float:
        """Return the worst of `values` in the declared direction."""
        return max(values) if self.better == "lower" else min(values)

    def largest_difference(self, worst: float, seen_values: Sequence[float] = ()) -> float:
        """Return the largest possible difference of two values, of which none is worse than `worst`.

        It is larger if some of `seen_values` lie beyond these ends. The better end of the range must be declared.
        """
        assert self.best_possible is not None
        return abs(self.best((self.best_possible, *seen_values)) - self.worst((worst, *seen_values)))

    def possible(self, value: float) -> bool:
        """Whether `value` lies in the declared range, within the rounding error of a mean."""
        slack = 1e-9 * max(1.0, abs(value))
        return (self.low is None or value >= self.low - slack) and (self.high is None or value <= self.high + slack)


class TaskMeasures(Settings, frozen=True, kw_only=True):
    """All measures of a task. The outcome must have a direction, and every name must be declared only once."""

    outcome: Measure
    measures: Annotated[tuple[Measure, ...], Meta(max_length=256)] = ()  # in the order of the records
    margin: Margin | None = None  # None: the user must give one

    def __post_init__(self) -> None:
        if self.outcome.better == "neither":
            raise ValueError(f"the outcome {self.outcome.name!r} needs a direction: better higher or lower")
        names = [self.outcome.name, *self.names]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the measure {name!r} is declared twice")
        taken_names = sorted(RESERVED.intersection(self.names))
        if taken_names:
            raise ValueError(f"no measure can be named {taken_names[0]!r}, because every experiment has that column")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all measures except the outcome, in the order of the records."""
        return tuple(measure.name for measure in self.measures)
