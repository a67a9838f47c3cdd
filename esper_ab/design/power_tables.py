"""Power tables for a spread that is known: one table for each pair correlation, all from the same draws."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.random import Generator

from esper_ab.contracts.errors import UsageError
from esper_ab.design.boundary_cache import find_bounds
from esper_ab.design.power import (
    PairSpread,
    PowerQuestion,
    PowerTable,
    ReplicatesNeeded,
    RunSpread,
    assumed,
    observed,
    power_tables_of,
    replicates_needed,
)
from esper_ab.settings.eval_episodes import EvaluationNoise

ROWS = (6, 8, 10, 12, 16, 20, 24, 30)  # replicates of the table
RHO = (0.0, 0.3, 0.6)  # nobody knows the pair correlation before the first pairs


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The spread to plan with: where from, and SD of runs with its degrees of freedom.

    `rho`: the pair correlation, where it was given; `sd_pairs`: that of the differences of the pairs seen,
    positions removed where the plan adjusts for them, with its degrees of freedom. None: unknown.
    """
    source: str
    sd: float
    df: int | None = None
    rho: float | None = None
    sd_pairs: float | None = None
    df_pairs: int | None = None
    noise: EvaluationNoise | None = None  # of what the spread was measured on
    unit: str = ""  # of differences; "": not known, or none


class EvalEpisodesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the number of evaluation episodes with the least variance x cost would change, for the first table."""

    eval_episodes: int  # of what was measured
    share: float  # of evaluation noise in its variance
    cost_share: float  # of the sampled evaluation in a run
    best: int
    sd: float  # of differences with `best` episodes
    cost_times: float  # a run with `best` episodes, as a multiple
    needed: ReplicatesNeeded  # with `best` episodes


class PowerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Tables by pair correlation; the first one is that of the pairs seen, or of the given `rho`, if there is one."""

    known: Known
    replicates: int
    tables: tuple[PowerTable, ...]
    eval_episodes: EvalEpisodesAnswer | None = None  # None where nothing is known of evaluation noise


def check_varied(known: Known) -> Known:
    """The spread itself; UsageError for a spread of 0, with which nothing can be planned."""
    if known.sd == 0.0:
        raise UsageError(f"{known.source}: runs do not differ at all there; nothing can be planned with a spread of 0")
    return known


def answer(known: Known, replicates: int, question: PowerQuestion, rows: Sequence[int] = ROWS) -> PowerAnswer:
    """Power tables of `rows` and `replicates`. Simulated power is seeded by what is asked: the same every time."""
    rhos = RHO if known.rho is None else (known.rho, *(rho for rho in RHO if rho != known.rho))
    tables = power_tables(known, rhos, sorted({*rows, replicates}), question)
    eval_episodes = None if known.noise is None else _with_best(known.noise, tables[0])
    return PowerAnswer(known=known, replicates=replicates, tables=tables, eval_episodes=eval_episodes)


def _with_best(noise: EvaluationNoise, table: PowerTable) -> EvalEpisodesAnswer:
    """The answer of `table` once more, with the best number of episodes in the place of those measured."""
    times = math.sqrt(noise.variance_times(noise.next_eval_episodes))
    limits = table.limits and (table.limits[0] * times, table.limits[1] * times)
    needed = replicates_needed(table.sd * times, limits, table.question, find_bounds, _generator(table.question))
    return EvalEpisodesAnswer(
        eval_episodes=noise.components.eval_episodes, share=noise.components.share, cost_share=noise.cost_share,
        best=noise.next_eval_episodes, sd=table.sd * times, cost_times=noise.cost_times(noise.next_eval_episodes),
        needed=needed,
    )  # fmt: skip


def _generator(question: PowerQuestion, replicates: Sequence[int] = ()) -> Generator:
    """A generator that is seeded by what is asked: the same draws with and without adjustment and stops, so that the
    answers differ by these alone.
    """
    asked = msgspec.to_builtins(question)
    del asked["positions_matter"], asked["futility"]
    digest = hashlib.sha256(msgspec.json.encode([asked, list(replicates)])).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def spreads(known: Known, rhos: Sequence[float]) -> tuple[PairSpread, ...]:
    """Spread of pairs: one for each pair correlation, and before them that of the pairs seen, where there were any."""
    supposed = tuple(assumed(RunSpread(sd=known.sd, df=known.df), rho) for rho in rhos)
    if known.sd_pairs is None or known.df_pairs is None:
        return supposed
    return (observed(known.sd, known.sd_pairs, known.df_pairs), *supposed)


def power_tables(
    known: Known, rhos: Sequence[float], replicates: Sequence[int], question: PowerQuestion
) -> tuple[PowerTable, ...]:
    """One table for each of the `spreads`, from the same draws."""
    return power_tables_of(
        spreads(known, rhos), replicates, question, find_bounds, _generator(question, replicates)
    )
