"""What the parts of runs say for the next plan: the spread of outcomes over each, and whether curves end flat. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import get_args

import msgspec
import numpy as np

from esper_ab.analysis.pair_spread import known_from_pairs
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.outcome_window import OutcomeOver, in_window
from esper_ab.design.design import LEAST_RUNS
from esper_ab.design.outcome_windows import WindowSpread
from esper_ab.design.window_advice import WINDOW, GroupChange
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import outcome_of
from esper_ab.stats.curve_change import CurveChange, curve_change
from esper_ab.stats.floats import Floats


def windows_of_runs(history: History) -> tuple[WindowSpread, ...]:
    """Return the spread of the runs of one group, by part; () without a curve."""
    windows = []
    for part, outcomes in _outcomes(history):
        if outcomes.size >= LEAST_RUNS:
            sd = float(np.std(outcomes, ddof=1))
            windows.append(WindowSpread(outcome_over=part, mean=float(np.mean(outcomes)), sd=sd))
    return tuple(windows)


def windows_of_pairs(history: History) -> tuple[WindowSpread, ...]:
    """Return the spreads of runs within groups and of pair differences, by part; () without a curve.

    Parts without an outcome or a spread are left out. How far the groups' means differ does not enter.
    """
    windows = []
    for part, outcomes in _outcomes(history):
        windowed_history = replace(history, design=msgspec.structs.replace(history.design, outcome_over=part))
        try:
            known_spread = known_from_pairs(windowed_history, part)
        except UsageError:
            continue
        mean = float(np.mean(outcomes))
        windows.append(WindowSpread(outcome_over=part, mean=mean, sd=known_spread.sd, sd_pairs=known_spread.sd_pairs))
    return tuple(windows)


def change_of_runs(history: History) -> CurveChange | None:
    """Return how much the curves of all runs, which are of one group, change over the last third of training."""
    return _change(history.runs.values())


def changes_of_groups(history: History) -> tuple[GroupChange, ...]:
    """Return how much the curves of each compared group change over the last third of training; () if unknown.

    If the change of one group is unknown, so is what a comparison over that part estimates.
    """
    changes = []
    for group in history.design.groups:
        change = _change(history.of_group(group))
        if change is None:
            return ()
        changes.append(GroupChange(group=group, change=change))
    return tuple(changes)


def _change(runs: Iterable[RunHistory]) -> CurveChange | None:
    """Return the change of the curves of finished runs; None if there are too few, or they are too short."""
    finished_runs = [run for run in runs if outcome_of(run, WINDOW) is not None]
    return curve_change([in_window(run.columns.of("outcome"), WINDOW) for run in finished_runs])


def _outcomes(history: History) -> Iterator[tuple[OutcomeOver, Floats]]:
    """Yield the outcomes of all runs by part; nothing if a run has no curve."""
    if history.plan.experiment.episodes == 1:
        return
    for part in get_args(OutcomeOver):
        outcomes = [outcome_of(run, part) for run in history.runs.values()]
        yield part, np.array([outcome for outcome in outcomes if outcome is not None], dtype=np.float64)
