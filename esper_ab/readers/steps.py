"""One outcome per run from its values over the training: the last, at a step, or the mean of the last few. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted, listed
from esper_ab.formats.source_table import Series

_FAR = 0.9  # of the group's median number of steps: a run that ends before that is lost
_MOST_NAMED = 3  # lost runs
# Names of columns of steps, the likeliest first; before the comparison, _plain makes them of a column's name.
_STEPS = (
    "global_step",
    "env_steps",
    "total_timesteps",
    "num_timesteps",
    "timesteps",
    "timestep",
    "total_steps",
    "steps",
    "step",
    "frames",
    "frame",
    "samples_seen",
    "tokens",
    "iterations",
    "iteration",
    "iter",
    "updates",
    "update",
    "epochs",
    "epoch",
)


@dataclass(frozen=True)
class StepRule:
    """Which values of a run make its outcome: as the user said, or by default the last one."""

    at: float | None = None  # the value at this step
    mean_last: int | None = None  # the mean of the last values

    @property
    def given(self) -> bool:
        """Whether the user said anything."""
        return self.at is not None or self.mean_last is not None


@dataclass(frozen=True)
class RunValues:
    """The values of one run over its steps."""

    group: str
    label: str  # for messages: "large, seed 3"
    series: Series
    window: int = 1  # values whose mean is the outcome, unless the user says otherwise
    row: str = "value"  # as in SourceTable


def check_rule(rule: StepRule) -> None:
    """Raise UsageError if both ways are given, or if a number makes no sense."""
    if rule.at is not None and rule.mean_last is not None:
        raise UsageError(SettingName("at"), " and ", SettingName("mean_last"), " exclude each other")
    if rule.mean_last is not None and rule.mean_last < 1:
        raise UsageError(SettingName("mean_last"), f" {rule.mean_last}: expected a number from 1 on")


def step_column(names: Sequence[str]) -> str:
    """Return the column that has the steps, by its name; "" if there is none."""
    plain_names = {_plain(name): name for name in reversed(names)}
    return next((plain_names[word] for word in _STEPS if word in plain_names), "")


@dataclass(frozen=True)
class StepOutcomes:
    """The outcomes that were taken from runs with a value per step."""

    outcomes: list[float | None]  # of each run; None: it is lost
    how: str  # a sentence for the user to check before reading the answer
    notes: tuple[str, ...]  # on lost runs, and on groups of which one trained longer


def outcomes_at(runs: Sequence[RunValues], rule: StepRule, metric: str) -> StepOutcomes:
    """Take the outcome of each run.

    A run is lost if it ended far before the others of its group or before the step that the user named, or if a value
    that counts is not finite. If that is so in every run, such values fill the rows that have none, and are left out.
    Raises UsageError if a run has values before and after the user's step but not at it.
    """
    last_steps = [float(run.series.steps.max()) if len(run.series.steps) else 0.0 for run in runs]
    early = _ended_early(runs, last_steps, rule)
    values: list[float | None] = []
    for place, run in enumerate(runs):
        if place in early or not len(run.series.values):
            values.append(None)
        else:
            values.append(_outcome(run, rule))
    known_places = [place for place in range(len(runs)) if values[place] is not None]
    diverged = [place for place in known_places if not math.isfinite(values[place] or 0.0)]
    if diverged and diverged == known_places and any(np.isfinite(run.series.values).any() for run in runs):
        return outcomes_at([_finite(run) for run in runs], rule, metric)
    for place in diverged:
        values[place] = None
    notes = _lost_notes(runs, last_steps, sorted(early), diverged, rule)
    if not rule.given:
        notes += _different_ends(runs, last_steps, early)
    return StepOutcomes(values, _how(runs, [last_steps[place] for place in known_places], rule, metric), tuple(notes))


def _finite(run: RunValues) -> RunValues:
    """Return the run without values that are not finite."""
    kept_places = np.flatnonzero(np.isfinite(run.series.values))
    rows = [run.series.row_numbers[place] for place in kept_places.tolist()]
    return replace(
        run, series=Series(run.series.name, run.series.steps[kept_places], run.series.values[kept_places], rows)
    )


def _lost_notes(
    runs: Sequence[RunValues], lasts: Sequence[float], early: Sequence[int], diverged: Sequence[int], rule: StepRule
) -> list[str]:
    """Name the runs that are lost, and say why."""
    notes = []
    if early:
        run_words = _some([f"{runs[place].label} at {_number(lasts[place])}" for place in early])
        end = f"before step {_number(rule.at)}" if rule.at is not None else "long before the others of their group"
        notes.append(f"Lost, because they ended {end}: {run_words}.")
    if diverged:
        run_words = _some([runs[place].label for place in diverged])
        notes.append(f"Lost, because a value that counts is not a finite number: {run_words}.")
    return notes


def _some(labels: Sequence[str]) -> str:
    named_labels = list(labels[:_MOST_NAMED])
    if len(labels) > _MOST_NAMED:
        named_labels.append(f"{len(labels) - _MOST_NAMED} more")
    return listed(named_labels)


def _ended_early(runs: Sequence[RunValues], last_steps: Sequence[float], rule: StepRule) -> set[int]:
    """Return the places of the runs that are lost."""
    if rule.at is not None:
        return {place for place, last_step in enumerate(last_steps) if last_step < rule.at}
    ends: dict[str, list[float]] = {}
    for run, last_step in zip(runs, last_steps, strict=True):
        ends.setdefault(run.group, []).append(last_step)
    usual_ends = {group: median(group_ends) for group, group_ends in ends.items()}
    return {place for place, last_step in enumerate(last_steps) if last_step < _FAR * usual_ends[runs[place].group]}


def _outcome(run: RunValues, rule: StepRule) -> float:
    order = np.argsort(run.series.steps, kind="stable")
    values = run.series.values[order]
    if rule.at is not None:
        steps = run.series.steps[order]
        values_at_step = values[steps == rule.at]
        if not len(values_at_step):
            step_before = _number(float(steps[steps < rule.at][-1])) if (steps < rule.at).any() else "none"
            step_after = _number(float(steps[steps > rule.at][0]))
            raise UsageError(
                SettingName("at", _number(rule.at)),
                f": {run.label} has no {run.series.name} at that step; the nearest are at {step_before} and "
                f"{step_after}",
            )
        return float(values_at_step[-1])
    count = rule.mean_last or run.window
    return float(values[-count:].mean()) if count > 1 else float(values[-1])


def _how(runs: Sequence[RunValues], lasts: Sequence[float], rule: StepRule, metric: str) -> str:
    """Say which values make the outcomes; `lasts`: the last step of each run that has one."""
    name = visible_line(metric, 60)
    if rule.at is not None:
        return f"The outcome of a run is its {name} at step {_number(rule.at)}."
    count = rule.mean_last or max((run.window for run in runs), default=1)
    step = ""
    if lasts:
        low = _number(min(lasts))
        high = _number(max(lasts))
        step = f"step {high}" if low == high else f"steps {low} to {high}"
    episodes = any(run.row == "episode" for run in runs)
    if count == 1:
        value_words = f"the {name} of its last episode" if episodes else f"its last {name}"
        return f"The outcome of a run is {value_words}{', at ' if step else ''}{step}."
    fewest = min((len(run.series.values) for run in runs if len(run.series.values)), default=count)
    fewer = f"; runs with fewer, down to {fewest}, count with all" if fewest < count else ""
    if episodes:
        mean = f"the mean {name} of its last {counted(count, 'episode')}{', up to ' if step else ''}{step}"
    else:
        mean = f"the mean of its last {counted(count, 'value')} of {name}{', at ' if step else ''}{step}"
    return f"The outcome of a run is {mean}{fewer}."


def _different_ends(runs: Sequence[RunValues], last_steps: Sequence[float], lost_places: set[int]) -> list[str]:
    """Say that some groups ran longer than others."""
    ends: dict[str, list[float]] = {}
    for place, (run, last_step) in enumerate(zip(runs, last_steps, strict=True)):
        if place not in lost_places:
            ends.setdefault(run.group, []).append(last_step)
    usual_ends = {group: median(group_ends) for group, group_ends in ends.items()}
    if not usual_ends or min(usual_ends.values()) >= _FAR * max(usual_ends.values()):
        return []
    named_groups = [f"{visible_line(group, 40)} at {_number(end)}" for group, end in usual_ends.items()]
    return [
        f"The groups end at different steps, {listed(named_groups[:_MOST_NAMED])}: a difference may be due to that; "
        "--at "
        f"{_number(min(usual_ends.values()))} compares them at one step."
    ]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _plain(name: str) -> str:
    """Return a column's name as in _STEPS: "time/total_timesteps" is "total_timesteps", and "Step" is "step"."""
    return name.strip().lower().rpartition("/")[2].replace(" ", "_").strip("_")
