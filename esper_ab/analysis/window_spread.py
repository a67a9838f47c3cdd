"""The spread of runs by the part of a run that the outcome summarises, to plan the next experiment with. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import msgspec
import numpy as np

from esper_ab.analysis.pair_spread import known_from_pairs
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.design.design import LEAST_RUNS
from esper_ab.design.outcome_windows import WindowSpread
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import outcome_of
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


def _outcomes(history: History) -> Iterator[tuple[OutcomeOver, Floats]]:
    """Yield the outcomes of all runs by part; nothing if a run has no curve."""
    if history.plan.experiment.episodes == 1:
        return
    for part in get_args(OutcomeOver):
        outcomes = [outcome_of(run, part) for run in history.runs.values()]
        yield part, np.array([outcome for outcome in outcomes if outcome is not None], dtype=np.float64)
