"""Power tables for a known spread: one table per pair correlation, all from the same draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from esper_ab.contracts.errors import UsageError
from esper_ab.design.claim_endings import ClaimEndings, claim_endings
from esper_ab.design.outcome_windows import WindowNeeds, WindowSpread, needs_of
from esper_ab.design.power import (
    PairSpread,
    PowerTable,
    ReplicatesNeeded,
    assumed,
    observed,
    power_tables_of,
    replicates_needed,
)
from esper_ab.design.scheme import PowerQuestion, generator_of, scheme
from esper_ab.design.shape_risk import ShapeRisk
from esper_ab.design.simulation import FEW_PATHS, Endings, Simulation, endings_at_margins
from esper_ab.design.window_advice import GroupChange, WindowAdvice, advice_of
from esper_ab.settings.eval_episodes import EvaluationNoise

ROWS = (6, 8, 10, 12, 16, 20, 24, 30)  # replicates in the table
RHO = (0.0, 0.3, 0.6)  # because the pair correlation is unknown before the first pairs


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The spread to plan with: its source, and the SD of runs with its degrees of freedom.

    `rho` is the pair correlation, if the user gave one. `sd_pairs` is the SD of the differences of observed pairs
    (adjusted for positions if the plan does so), and `df_pairs` is its degrees of freedom. None means unknown.
    """

    source: str
    sd: float
    df: int | None = None
    rho: float | None = None
    sd_pairs: float | None = None
    df_pairs: int | None = None
    noise: EvaluationNoise | None = None  # of the runs that showed the spread
    unit: str = ""  # of differences; "": there is none, or it is unknown
    windows: tuple[WindowSpread, ...] = ()  # of the measured runs, by --outcome-over
    group_changes: tuple[GroupChange, ...] = ()  # of their curves, over the last third of training
    # Of a calibration's runs or of an experiment's differences; unset: it is unknown, or raises no error rate.
    shape_risk: ShapeRisk | UnsetType = UNSET


class EvalEpisodesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The best number of evaluation episodes (least variance x cost), and how it would change the first table."""

    eval_episodes: int  # of the measured runs
    share: float  # of evaluation noise in their variance
    cost_share: float  # of the sampled evaluation in the cost of a run
    best: int
    sd: float  # of differences with `best` episodes
    cost_times: float  # cost of a run with `best` episodes, relative to the measured runs
    needed: ReplicatesNeeded  # with `best` episodes


class PowerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A table per pair correlation; the first is for the observed pairs or for the given `rho`, if either is known."""

    known: Known
    replicates: int
    tables: tuple[PowerTable, ...]
    eval_episodes: EvalEpisodesAnswer | None = None  # None if the evaluation noise is unknown
    windows: tuple[WindowNeeds, ...] = ()
    window_advice: WindowAdvice | None = None  # None: nothing is known about curves
    endings: tuple[Endings, ...] = ()  # for the spread of the first table, at true differences of 0, 1/2, 1, 2 margins
    claim_endings: tuple[ClaimEndings, ...] | UnsetType = UNSET  # in place of `endings`, for the claim not-worse


def check_varied(known_spread: Known) -> Known:
    """Return the spread; raises UsageError if it is 0, because planning needs a positive spread."""
    if known_spread.sd == 0.0:
        raise UsageError(
            f"{known_spread.source}: their outcomes do not differ at all, but planning needs a positive spread"
        )
    return known_spread


def answer(known_spread: Known, replicates: int, question: PowerQuestion, rows: Sequence[int] = ROWS) -> PowerAnswer:
    """Compute power tables for `rows` and `replicates`; the seed is derived from the question."""
    rhos: tuple[float, ...] = RHO
    if known_spread.rho is not None:
        rhos = (known_spread.rho, *(rho for rho in RHO if rho != known_spread.rho))
    tables = power_tables(known_spread, rhos, sorted({*rows, replicates}), question)
    eval_episodes = None
    if known_spread.noise is not None:
        eval_episodes = _recompute(known_spread.noise, tables[0])
    (row,) = (row for row in tables[0].rows if row.replicates == replicates)
    simulation = Simulation(
        scheme(replicates, row.looks, question),
        generator_of(question, (replicates,)),
        FEW_PATHS,
        shape_bound=question.shape_bound(tables[0].sd),
    )
    effect = question.margin / tables[0].sd
    endings: tuple[Endings, ...] = ()
    endings_of_claim: tuple[ClaimEndings, ...] | UnsetType = UNSET
    if question.claim == "difference":
        endings = endings_at_margins(simulation, effect)
    else:
        endings_of_claim = claim_endings(simulation, effect)
    windows = needs_of(known_spread.windows, tables)
    return PowerAnswer(
        known=known_spread,
        replicates=replicates,
        tables=tables,
        eval_episodes=eval_episodes,
        windows=windows,
        window_advice=advice_of(windows, known_spread.group_changes, question.margin),
        endings=endings,
        claim_endings=endings_of_claim,
    )


def _recompute(noise: EvaluationNoise, table: PowerTable) -> EvalEpisodesAnswer:
    """Recompute `table` for the best number of evaluation episodes instead of the measured number."""
    best_episodes = noise.next_eval_episodes
    times = math.sqrt(noise.variance_times(best_episodes))
    sd = table.sd * times
    limits = None
    if table.limits is not None:
        low, high = table.limits
        limits = (low * times, high * times)
    needed_seeds = replicates_needed(sd, limits, table.question, generator_of(table.question))
    return EvalEpisodesAnswer(
        eval_episodes=noise.components.eval_episodes,
        share=noise.components.share,
        cost_share=noise.cost_share,
        best=best_episodes,
        sd=sd,
        cost_times=noise.cost_times(best_episodes),
        needed=needed_seeds,
    )


def spreads(known_spread: Known, rhos: Sequence[float]) -> tuple[PairSpread, ...]:
    """Return the spread of the observed pairs, if there are any, then the spread for each correlation in `rhos`."""
    assumed_spreads = tuple(assumed(known_spread.sd, rho, known_spread.df) for rho in rhos)
    if known_spread.sd_pairs is None or known_spread.df_pairs is None:
        return assumed_spreads
    return (observed(known_spread.sd, known_spread.sd_pairs, known_spread.df_pairs), *assumed_spreads)


def power_tables(
    known_spread: Known, rhos: Sequence[float], replicates: Sequence[int], question: PowerQuestion
) -> tuple[PowerTable, ...]:
    """Compute a table for each of the `spreads`, from the same draws."""
    return power_tables_of(spreads(known_spread, rhos), replicates, question, generator_of(question, replicates))
