"""The guarded measures of the runs of an experiment, in place of their outcomes. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from esper_ab.design.guardrails import Guardrail
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import mean_measure
from esper_ab.verdict.runs import Runs


def guarded_rows(history: History, rows: Runs, guardrail: Guardrail) -> Runs:
    """Return the runs `rows` with the measure of a guardrail as value; NaN if it is not known."""
    values = [_value(history.runs[rows.run[row]], guardrail) for row in range(len(rows))]
    return replace(rows, value=np.array(values, dtype=np.float64))


def _value(run: RunHistory, guardrail: Guardrail) -> float:
    if guardrail.source == "crashes":
        return float(run.lost and run.failed)
    if run.lost or run.evaluation is None:
        return math.nan
    if guardrail.source == "wall_s":
        return math.fsum((*run.columns.known("total_s"), run.evaluation.timing.total_s))
    value = mean_measure(run.evaluation, guardrail.measure.name)
    if value is None:  # a trainer reports its measures with the points of its training
        points = run.columns.measure(guardrail.measure.name)
        return points[-1] if len(points) else math.nan
    return value
