"""What the runs of an A/A experiment say about chance: calibration.json out of a history."""

from __future__ import annotations

import numpy as np

from esper_ab.analysis.evaluation_noise import noise_of_runs
from esper_ab.contracts.errors import UsageError
from esper_ab.design.boundary_cache import find_bounds
from esper_ab.design.calibration import autocorrelation, factor_effects, intraclass_correlation, last_episodes, spread
from esper_ab.design.calibration_file import SCHEMA, Calibration, circumstances_of
from esper_ab.design.design import LEAST_RUNS, default_looks
from esper_ab.design.false_claims import false_claims
from esper_ab.design.power import PowerQuestion
from esper_ab.design.power_tables import RHO, ROWS, Known, power_tables
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import mean_outcome, outcome_of
from esper_ab.settings.differences import flat
from esper_ab.stats.least_pairs import LEAST_PAIRS


def calibration_of(history: History, replicates: int, *, deterministic: bool, named: bool) -> Calibration:
    """The calibration that the finished runs of an A/A experiment give, for an experiment of `replicates`.

    The rules are tried on draws of a generator that the plan's digest seeds. UsageError for too few runs. Where nobody
    has `named` a margin, it is what that many replicates can find.
    """
    plan, experiment = history.plan, history.plan.experiment
    runs = [run for run in history.runs.values() if outcome_of(run, experiment.outcome_over) is not None]
    if len(runs) < LEAST_RUNS:
        raise UsageError(f"only {len(runs)} runs have an outcome; a calibration needs {LEAST_RUNS} at least")
    outcomes = np.array([outcome_of(run, experiment.outcome_over) for run in runs], dtype=np.float64)
    trained = np.array([[mean_outcome(record) for record in run.curve()] for run in runs], dtype=np.float64)
    curves = trained[:, np.isfinite(trained).all(axis=0)]  # a rollout in which no episode ended has no outcome
    per_group = min(replicates, len(runs) // 2)
    looks = default_looks(per_group)
    nominal = find_bounds([(0, 1)] * per_group, 1, looks, (experiment.alpha,))[0] if per_group >= LEAST_PAIRS else ()
    rng = np.random.Generator(np.random.Philox(key=int(plan.digest[:32], 16)))
    whole = spread(outcomes)
    known = Known(source="these runs", sd=whole.sd, df=whole.runs - 1)
    margin = experiment.margin if named else _resolvable(known, replicates, experiment.alpha)
    group = experiment.groups[0]
    learns = group.settings.has_policy
    return Calibration(
        schema=SCHEMA,
        mode=group.settings.reward.mode if learns else group.settings.controller.name,
        circumstances=circumstances_of(experiment),
        settings=flat(group),
        experiment=plan.digest,
        outcome=history.outcome,
        versions=history.started.versions,
        code=history.started.code,
        spread=whole,
        autocorrelation=autocorrelation(curves) if curves.shape == trained.shape else None,
        intraclass=intraclass_correlation(last_episodes(curves)),
        effects=factor_effects(outcomes, _factors(history, runs)),
        deterministic=deterministic,
        noise=noise_of_runs(history),
        planned=replicates,
        replicates=per_group,
        claims=false_claims(curves, outcomes, per_group, tuple(zip(looks, nominal, strict=False)), rng),
        margin=margin,
        margin_named=named,
        power=power_tables(known, RHO, ROWS, PowerQuestion(margin=margin, alpha=experiment.alpha))
        if known.sd > 0.0
        else (),
    )


def _resolvable(known: Known, replicates: int, alpha: float) -> float:
    """Return the difference that `replicates` uncorrelated pairs find with 80 % power; 1 where runs are all equal."""
    if known.sd == 0.0:
        return 1.0
    rows = (max(replicates, LEAST_PAIRS),)
    (table,) = power_tables(known, (0.0,), rows, PowerQuestion(margin=known.sd, alpha=alpha))
    return float(f"{table.rows[0].smallest:.2g}")


def _factors(history: History, runs: list[RunHistory]) -> dict[str, list[str]]:
    """The levels of both factors by run: its device, and its place in the start order."""
    devices = {lane.name: "+".join(lane.devices) for lane in history.plan.lanes}
    places = {
        spec.ref.name: str(place + 1) for block in history.blocks for place, spec in enumerate(block.runs)
    }
    return {
        "device": [devices[run.ref.device] for run in runs],
        "start order": [places[run.ref.name] for run in runs],
    }
