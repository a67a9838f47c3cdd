"""Measure chance in a finished experiment, to plan the next one: spread, evaluation noise, calibration.json."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.analysis.observe import pairs_of
from esper_ab.contracts.errors import UsageError
from esper_ab.design.calibration_file import SCHEMA, Calibration, Spread, circumstances_of
from esper_ab.design.design import LEAST_RUNS, Contrast, Design
from esper_ab.design.power import PowerQuestion
from esper_ab.design.power_text import RHO, ROWS, Known, check_varied, power_tables
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import outcome_of
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.settings.experiment import flat
from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.evaluation_noise import Components
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Pair
from esper_ab.stats.variances import components, sd_limits

# --- evaluation noise ------------------------------------------------------------------------------------------------
# Evaluation noise of an experiment: its share in the outcome's variance, what it cost, what to plan next. Pure.


def noise_of_pairs(history: History) -> EvaluationNoise | None:
    """Return the evaluation noise in the differences of all compared pairs, whose runs share evaluation episodes.

    Returns None if the outcome does not come from the evaluation, or if there are too few data.
    """
    ends = {
        group: {run.ref.replicate: _outcomes(run) for run in _evaluated(history, group)} for group in history.groups
    }
    differences = [
        [ends[one.a][place] - ends[one.b][place] for place in sorted(ends[one.a].keys() & ends[one.b].keys())]
        for one in history.design.comparisons
    ]
    return _with_costs(history, _estimate(differences, len(history.design.groups) - 1))


def noise_of_runs(history: History) -> EvaluationNoise | None:
    """Return the evaluation noise in the outcomes of single runs, pooled over groups.

    Returns None in the same cases as `noise_of_pairs`.
    """
    groups = [[_outcomes(run) for run in _evaluated(history, group)] for group in history.groups]
    return _with_costs(history, _estimate(groups, len(groups)))


def _estimate(sets: Sequence[Sequence[Floats]], independent: int) -> Components | None:
    """Estimate from outcomes [episodes] by set and run; sets of fewer than two runs are skipped."""
    several = [np.stack(one) for one in sets if len(one) > 1]
    return components(several, min(independent, len(several)))


def _evaluated(history: History, group: str) -> list[RunHistory]:
    """Return the runs of a group whose outcome comes from a complete evaluation."""
    declared = history.design.outcome_over
    if declared != "evaluation":
        return []
    runs = (run for run in history.of_group(group) if outcome_of(run, declared) is not None)
    return [run for run in runs if len(_outcomes(run)) == run.spec.eval_episodes]


def _outcomes(run: RunHistory) -> Floats:
    """Return the outcome of each sampled episode, in the order of episodes and environments."""
    eval_episodes = run.evaluation.episodes if run.evaluation else ()
    sampled = sorted(
        (played for played in eval_episodes if played.actions == "sampled"), key=lambda x: (x.episode, x.outcome.env)
    )
    return np.array([played.outcome.outcome for played in sampled])


def _with_costs(history: History, found: Components | None) -> EvaluationNoise | None:
    """Add the seconds per training episode and per evaluation episode, over all evaluated runs."""
    experiment = history.plan.experiment
    done = [(run, run.evaluation) for run in history.runs.values() if run.evaluation is not None]
    if found is None or not done:
        return None
    trained_s = math.fsum(math.fsum(run.columns.known("total_s")) for run, _ in done)
    evaluated_s = math.fsum(evaluation.timing.total_s for _, evaluation in done)
    trained, evaluated = len(done) * experiment.episodes * experiment.n_envs, sum(len(one.episodes) for _, one in done)
    if min(trained_s, evaluated_s) <= 0.0:
        return None
    return EvaluationNoise(
        components=found, episodes=experiment.episodes, n_envs=experiment.n_envs,
        training_episode_s=trained_s / trained, evaluation_episode_s=evaluated_s / evaluated,
    )  # fmt: skip


# --- pair spread -----------------------------------------------------------------------------------------------------
# The spread of runs and of pairs in a finished experiment, to plan the next one with. Pure.


def known_from_pairs(history: History, name: str) -> Known:
    """Return the SD of runs within a group, and the SD of pair differences, as seen in `history`.

    Both measure variation around a mean; how far the groups' means differ does not enter. Sums of squares are pooled by
    degrees of freedom, over groups and over comparisons. Groups that share randomness vary together, and comparisons
    share runs. This lowers the degrees of freedom (Satterthwaite 1946, for dependent sums of squares).

    `name`: what messages call the history. Raises UsageError if there are fewer than two pairs, or if all runs are
    equal.
    """
    groups: dict[str, dict[int, float]] = {}
    residuals = []
    for contrast in history.design.comparisons:
        pairs = pairs_of(history, contrast)
        groups.setdefault(contrast.a, {}).update({pair.replicate: pair.a for pair in pairs})
        groups.setdefault(contrast.b, {}).update({pair.replicate: pair.b for pair in pairs})
        residuals.append(residual_sd(history.design, pairs))
    samples = [np.array(list(values.values())) for values in groups.values() if len(values) > 1]
    df = sum(sample.size - 1 for sample in samples)
    if not df:
        raise UsageError(f"--experiment {name}: estimating a spread needs at least two finished seeds; give --sd-run")
    square = math.fsum(float(np.sum((sample - sample.mean()) ** 2)) for sample in samples)
    sd, noise = math.sqrt(square / df), noise_of_pairs(history)
    known = check_varied(Known(
        source=f"{len(groups)} groups of {name}", sd=sd, df=df, noise=noise, unit=history.outcome.apart,
    ))
    pooled = sum(one_df for _, one_df in residuals)
    sd_pairs = math.sqrt(math.fsum(one**2 * one_df for one, one_df in residuals) / pooled) if pooled else 0.0
    if not sd_pairs:
        return known
    rho = 1.0 - sd_pairs**2 / (2.0 * sd**2)
    return msgspec.structs.replace(
        known, df=_counted(df, np.full((len(samples), len(samples)), rho)), sd_pairs=sd_pairs,
        df_pairs=_counted(pooled, _shared_runs(history.design.comparisons)),
    )


def _shared_runs(contrasts: Sequence[Contrast]) -> Floats:
    """Return correlations of the differences of `contrasts`, [contrasts, contrasts]: half for each shared group."""
    names = sorted({name for one in contrasts for name in one.groups})
    signs = np.array([[float(name == one.a) - float(name == one.b) for name in names] for one in contrasts])
    return np.asarray(signs @ signs.T / 2.0)


def _counted(df: int, correlations: Floats) -> int:
    """Return the effective degrees of freedom of sums of squares that have `df` degrees of freedom together.

    `correlations`: the correlations of their values, [sums, sums].
    """
    count = len(correlations)
    off = float(np.sum(np.square(correlations))) - float(np.sum(np.square(np.diag(correlations))))
    return max(1, round(df * count / (count + off)))


def residual_sd(design: Design, pairs: Sequence[Pair]) -> tuple[float, int]:
    """Return the SD of pair differences that the design's test uses, and its degrees of freedom; (0.0, 0) if none."""
    positions = design.positions if design.adjusted else 1
    sides = [(pair.position_a, pair.position_b) for pair in pairs]
    found = adjusted_difference([pair.a for pair in pairs], [pair.b for pair in pairs], sides, positions)
    return (0.0, 0) if found is None or found.sd is None else (found.sd, int(found.df))


# --- calibration -----------------------------------------------------------------------------------------------------
# Make calibration.json from the history of an A/A experiment: what its runs say about chance.


def calibration_of(history: History, replicates: int, *, deterministic: bool, named: bool) -> Calibration:
    """Return the calibration from the finished runs of an A/A experiment, for an experiment of `replicates`.

    Unless the user has `named` a margin, the margin is the difference that can be found with this many replicates.
    Raises UsageError if too few runs have an outcome.
    """
    experiment = history.plan.experiment
    runs = [run for run in history.runs.values() if outcome_of(run, experiment.outcome_over) is not None]
    if len(runs) < LEAST_RUNS:
        raise UsageError(f"only {len(runs)} runs have an outcome; a calibration needs at least {LEAST_RUNS}")
    outcomes = np.array([outcome_of(run, experiment.outcome_over) for run in runs], dtype=np.float64)
    whole = _spread(outcomes)
    known = Known(source="these runs", sd=whole.sd, df=whole.runs - 1)
    margin = experiment.margin if named else _resolvable(known, replicates, experiment.alpha)
    group = experiment.groups[0]
    return Calibration(
        schema=SCHEMA,
        mode=group.settings.reward.mode if group.settings.has_policy else group.settings.controller.name,
        circumstances=circumstances_of(experiment),
        settings=flat(group),
        outcome=history.outcome,
        code=history.started.code,
        spread=whole,
        deterministic=deterministic,
        noise=noise_of_runs(history),
        planned=replicates,
        margin=margin,
        margin_named=named,
        power=power_tables(known, RHO, ROWS, PowerQuestion(margin=margin, alpha=experiment.alpha))
        if known.sd > 0.0
        else (),
    )


def _resolvable(known: Known, replicates: int, alpha: float) -> float:
    """Return the difference found with 80 % power in `replicates` uncorrelated pairs; 1 if all runs are equal."""
    if known.sd == 0.0:
        return 1.0
    rows = (max(replicates, LEAST_PAIRS),)
    (table,) = power_tables(known, (0.0,), rows, PowerQuestion(margin=known.sd, alpha=alpha))
    return float(f"{table.rows[0].smallest:.2g}")


def _spread(x: Floats) -> Spread:
    """Return the spread of finite values [runs], at least two."""
    sd, df = float(np.std(x, ddof=1)), x.size - 1
    low, high = sd_limits(sd, df, 0.95)
    return Spread(runs=int(x.size), mean=math.fsum(x) / x.size, sd=sd, low=low, high=high)
