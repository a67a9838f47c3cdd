"""Make calibration.json from the history of an A/A experiment: what its runs say about chance."""

from __future__ import annotations

import math

import numpy as np
from msgspec import UNSET

from esper_ab.analysis.evaluation_noise import noise_of_runs
from esper_ab.analysis.window_spread import change_of_runs, windows_of_runs
from esper_ab.contracts.errors import UsageError
from esper_ab.design.calibration_file import SCHEMA, Calibration, Spread
from esper_ab.design.design import LEAST_RUNS
from esper_ab.design.power import PowerTable
from esper_ab.design.power_tables import RHO, ROWS, Known, power_tables
from esper_ab.design.scheme import PowerQuestion
from esper_ab.design.shape_risk import shape_risk
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import outcome_of
from esper_ab.plan.user_code import sources_of_plan
from esper_ab.settings.circumstances import circumstances_of
from esper_ab.settings.differences import flat
from esper_ab.settings.experiment import Group
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.sd_limits import sd_limits


def calibration_of(history: History, replicates: int, *, deterministic: bool, margin_named: bool) -> Calibration:
    """Return the calibration from the finished runs of an A/A experiment, for an experiment of `replicates`.

    `margin_named`: whether the user named a margin; else the margin is the difference that can be found with this many
    replicates. Raises UsageError if too few runs have an outcome.
    """
    experiment = history.plan.experiment
    run_outcomes = [outcome_of(run, experiment.outcome_over) for run in history.runs.values()]
    outcomes = np.array([outcome for outcome in run_outcomes if outcome is not None], dtype=np.float64)
    if outcomes.size < LEAST_RUNS:
        raise UsageError(f"only {outcomes.size} runs have an outcome; a calibration needs at least {LEAST_RUNS}")
    spread = _spread(outcomes)
    known_spread = Known(source="these runs", sd=spread.sd, df=spread.runs - 1)
    if margin_named:
        margin = experiment.margin
    else:
        margin = _resolvable(known_spread, replicates, experiment.alpha)
    power: tuple[PowerTable, ...] = ()
    if known_spread.sd > 0.0:
        power = power_tables(known_spread, RHO, ROWS, PowerQuestion(margin=margin, alpha=experiment.alpha))
    group = experiment.groups[0]
    return Calibration(
        schema=SCHEMA,
        mode=_mode(group),
        circumstances=circumstances_of(experiment),
        settings=flat(group),
        outcome=history.outcome,
        code=history.started.code | sources_of_plan(history.plan),
        spread=spread,
        deterministic=deterministic,
        noise=noise_of_runs(history),
        planned=replicates,
        margin=margin,
        margin_named=margin_named,
        power=power,
        windows=windows_of_runs(history),
        curve_change=change_of_runs(history),
        shape_risk=shape_risk(outcomes, replicates) or UNSET,
    )


def _mode(group: Group) -> str:
    """Return the reward mode of a group with a policy; otherwise, its controller."""
    if group.settings.has_policy:
        return group.settings.reward.mode
    return group.settings.controller.name


def _resolvable(known_spread: Known, replicates: int, alpha: float) -> float:
    """Return the difference found with 80 % power in `replicates` uncorrelated pairs; 1 if all runs are equal."""
    if known_spread.sd == 0.0:
        return 1.0
    rows = (max(replicates, LEAST_PAIRS),)
    (table,) = power_tables(known_spread, (0.0,), rows, PowerQuestion(margin=known_spread.sd, alpha=alpha))
    return float(f"{table.rows[0].smallest:.2g}")


def _spread(x: Floats) -> Spread:
    """Return the spread of finite values [runs], at least two."""
    sd = float(np.std(x, ddof=1))
    df = x.size - 1
    low, high = sd_limits(sd, df, 0.95)
    return Spread(runs=int(x.size), mean=math.fsum(x) / x.size, sd=sd, low=low, high=high)
