"""Power tables for a spread that is known: one table for each pair correlation, all from the same draws."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.design.boundary_cache import calibrate
from esper_ab.design.power import PairSpread, PowerQuestion, PowerTable, RunSpread, assumed, observed, power_table

ROWS = (6, 8, 10, 12, 16, 20, 24, 30)  # replicates of the table
RHO = (0.0, 0.3, 0.6)  # nobody knows the pair correlation before the first pairs


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The spread to plan with: where from, and SD of runs in points with its degrees of freedom.

    `rho`: the pair correlation, where it was given; `sd_pairs`: that of the differences of the pairs seen, in points,
    positions removed where the plan adjusts for them, with its degrees of freedom. None: unknown.
    """
    source: str
    sd: float
    df: int | None = None
    rho: float | None = None
    sd_pairs: float | None = None
    df_pairs: int | None = None


class PowerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Tables by pair correlation; the first one is that of the pairs seen, or of the given `rho`, if there is one."""

    known: Known
    replicates: int
    tables: tuple[PowerTable, ...]


def check_varied(known: Known) -> Known:
    """The spread itself; UsageError for a spread of 0, with which nothing can be planned."""
    if known.sd == 0.0:
        raise UsageError(f"{known.source}: runs do not differ at all there; nothing can be planned with a spread of 0")
    return known


def answer(known: Known, replicates: int, question: PowerQuestion, rows: Sequence[int] = ROWS) -> PowerAnswer:
    """Power tables of `rows` and `replicates`. Simulated power is seeded by what is asked: the same every time."""
    rhos = RHO if known.rho is None else (known.rho, *(rho for rho in RHO if rho != known.rho))
    tables = power_tables(known, rhos, sorted({*rows, replicates}), question)
    return PowerAnswer(known=known, replicates=replicates, tables=tables)


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
    # The same draws with and without adjustment and stops: the answers differ by these alone
    asked = msgspec.to_builtins(question)
    del asked["positions_matter"], asked["futility"]
    digest = hashlib.sha256(msgspec.json.encode([asked, list(replicates)])).digest()
    return tuple(
        power_table(
            spread, replicates, question, calibrate,
            np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little"))),
        )
        for spread in spreads(known, rhos)
    )  # fmt: skip
