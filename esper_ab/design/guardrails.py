"""Guardrails: further measures of a run that must not get worse, tested in their order after the claim. Pure.

A guardrail is written as "lower wall_s margin 10%": the direction that is better, the measure, and how much worse it
may get, in its unit or in percent of the other group's mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.measures import LARGEST_OUTCOME, SMALLEST_MARGIN, Margin, Measure, TaskMeasures
from esper_ab.contracts.settings import Fraction, Settings
from esper_ab.contracts.wording import did_you_mean
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS

WALL_TIME = "wall_s"
CRASHES = "crashes"
EXAMPLE = "lower wall_s margin 10%"
# Measures of every run, beside those of its task.
BUILT_IN = {
    WALL_TIME: Measure(name=WALL_TIME, label="wall time", unit="s", better="lower", low=0.0),
    CRASHES: Measure(name=CRASHES, label="crashes per run", better="lower", low=0.0, high=1.0),
}
_WRITTEN = re.compile(r"(higher|lower)\s+(\S.*\S|\S)\s+margin\s+(\S+?)\s*(%?)")


class Guardrail(Settings, frozen=True, kw_only=True):
    """One measure that must not get worse by its margin or more."""

    source: Literal["measure", "wall_s", "crashes"]  # a measure of the task, or one that every run has
    measure: Measure  # with the direction that is better
    margin: Margin  # in the unit of differences; if `relative`, a share of the other group's mean
    relative: bool = False

    @property
    def recorded(self) -> bool:
        """True if the measure is in the records of a run, as its task reports it; times and crashes are not."""
        return self.source == "measure"

    @property
    def margin_words(self) -> str:
        """The margin with its unit: "10 %", "2 s"."""
        if self.relative:
            return f"{100.0 * self.margin:g} %"
        return self.measure.difference(f"{self.margin:g}")


class Guardrails(Settings, frozen=True, kw_only=True):
    """All guardrails of a plan, in the order in which they are tested, and their bounds.

    The bounds are those of BETTER, on one side: half of the two-sided bounds at the share of alpha that each comparison
    holds first. The other half is that of WORSE.
    """

    items: tuple[Guardrail, ...]
    nominal_p: tuple[Fraction, ...]  # one-sided, per look

    @property
    def recorded(self) -> bool:
        """True if all measures are in the records, so that equal records mean equal measures."""
        return all(item.recorded for item in self.items)


def guardrails_of(texts: Sequence[str], measures: TaskMeasures) -> tuple[Guardrail, ...]:
    """Parse guardrails on the measures of a task.

    Raises UsageError for a wrong form, an unknown measure, and a measure that is the outcome or has two guardrails.
    """
    items = tuple(_parse(text, measures) for text in texts)
    names = [item.measure.name for item in items]
    for text, name in zip(texts, names, strict=True):
        if names.count(name) > 1:
            raise UsageError(SettingName("guardrails", text), f": {name} has two guardrails; give one")
    return items


def check_form(texts: Sequence[str]) -> None:
    """Raise UsageError for a guardrail that has the wrong form, before the measures of the task are known."""
    for text in texts:
        _parts(text)


def check_guardrails(
    texts: Sequence[str], *, groups: Sequence[str], control: str, seeds: int | None, looks: tuple[int, ...]
) -> None:
    """Raise UsageError if a plan with these settings could not show that guardrails hold.

    `groups` are those that are compared, `looks` those that were named, and `seeds` is None in a plan without maximum.
    """
    if not texts:
        return
    check_form(texts)
    asked_setting = SettingName("guardrails", texts[0])
    if not control and len(groups) > 2:
        raise UsageError(
            asked_setting,
            " asks whether a group is not worse than one other; name that one with ",
            SettingName("control"),
            ", or compare two groups",
        )
    if seeds is None:
        raise UsageError(
            asked_setting,
            " needs a fixed number of seeds, because guardrails are tested at planned looks; use ",
            SettingName("seeds", 20),
        )
    if seeds < LEAST_EQUIVALENCE_PAIRS:
        raise UsageError(
            asked_setting,
            f" needs at least {LEAST_EQUIVALENCE_PAIRS} seeds, because fewer runs seldom show a rare failure; use ",
            SettingName("seeds", 20),
        )
    if looks and looks[0] < LEAST_EQUIVALENCE_PAIRS:
        raise UsageError(
            SettingName("looks", looks[0]),
            f": with guardrails the first look needs at least {LEAST_EQUIVALENCE_PAIRS} seeds",
        )


def _parts(text: str) -> tuple[str, str, float, bool]:
    """Return direction, name, margin, and whether the margin is a share."""
    form_match = _WRITTEN.fullmatch(text.strip())
    if form_match is None:
        raise UsageError(
            SettingName("guardrails", text),
            ": expected the direction that is better, a measure, and how much worse it may get, as in "
            f'"{EXAMPLE}" or "higher reward margin 5"',
        )
    direction, name, size, percent = form_match.groups()
    try:
        margin = float(size)
    except ValueError:
        margin = 0.0
    relative = percent == "%"
    if relative:
        margin /= 100.0
    if not SMALLEST_MARGIN <= margin <= LARGEST_OUTCOME:
        raise UsageError(SettingName("guardrails", text), f": the margin {size} must be a number above 0")
    return direction, name, margin, relative


def _parse(text: str, measures: TaskMeasures) -> Guardrail:
    direction, name, margin, relative = _parts(text)
    measure = _measure(text, name, measures)
    source: Literal["measure", "wall_s", "crashes"] = "measure"
    if measure is None and name == WALL_TIME:
        source = "wall_s"
    elif measure is None:
        source = "crashes"
    guarded_measure = measure or BUILT_IN[name]
    declared_direction = guarded_measure.better
    if declared_direction not in ("neither", direction):
        raise UsageError(
            SettingName("guardrails", text), f": {declared_direction} is better for {guarded_measure.label}"
        )
    if source == "crashes" and relative:
        raise UsageError(
            SettingName("guardrails", text), ': crashes need a margin per run, as in "lower crashes margin 0.2"'
        )
    return Guardrail(
        source=source,
        measure=msgspec.structs.replace(guarded_measure, better=direction),
        margin=margin,
        relative=relative,
    )


def _measure(text: str, name: str, measures: TaskMeasures) -> Measure | None:
    """Return the task's measure of this name or label; None for one that every run has."""
    if name in (measures.outcome.name, measures.outcome.label):
        raise UsageError(
            SettingName("guardrails", text),
            f": {name} is the outcome, which is tested first; name another measure",
        )
    for measure in measures.measures:
        if name in (measure.name, measure.label):
            return measure
    if name not in BUILT_IN:
        known_names = [*BUILT_IN, *(measure.label for measure in measures.measures)]
        remedy = did_you_mean(name, known_names)
        if not measures.measures:
            remedy += (
                "; runs record nothing else beside their outcome: a command never does, a function does if it returns "
                "a dict of numbers"
            )
        raise UsageError(SettingName("guardrails", text), f": no measure {name!r}; {remedy}")
    return None
