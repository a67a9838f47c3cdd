"""Describe power and evaluation noise in sentences, and compute power tables for a known spread."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.random import Generator

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import counted, significant
from esper_ab.design.design import Design
from esper_ab.design.pairs_needed import MOST_NAMED
from esper_ab.design.power import (
    PairSpread,
    PowerQuestion,
    PowerRow,
    PowerTable,
    ReplicatesNeeded,
    Simulation,
    assumed,
    observed,
    power_tables_of,
    replicates_needed,
    scheme,
    sd_of_differences,
)
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.text import digits_for, with_unit

_FEW_PATHS = 10_000  # for one line of a plan; standard error of a power of 0.8: 0.004

# --- episodes text ---------------------------------------------------------------------------------------------------
# Evaluation noise in words, for a report and for `power`. Pure.


def share_text(noise: EvaluationNoise) -> str:
    """Return the share of evaluation noise in the variance of an outcome, with its confidence limits, in percent.

    The estimate is a ratio of variances and can exceed 1, so it is clamped to 100 %.
    """
    found = noise.components
    share, low, high = (100 * min(one, 1.0) for one in (found.share, found.share_low, found.share_high))
    return f"{share:.0f} % (80 % limits {low:.0f} to {high:.0f})"


def next_text(noise: EvaluationNoise) -> str:
    """Suggest the number of evaluation episodes for the next plan, and estimate the change in variance and cost."""
    eval_episodes = noise.next_eval_episodes
    if eval_episodes == noise.components.eval_episodes:
        return f"--eval-episodes {eval_episodes}, as used here, has the least variance x cost"
    variance, cost = noise.variance_times(eval_episodes), noise.cost_times(eval_episodes)
    more = eval_episodes > noise.components.eval_episodes  # then the variance is an upper bound
    pairs, compute = _change(variance, "fewer", limit=more), _change(variance * cost, "less", limit=more)
    least = f" (a verdict needs {LEAST_PAIRS})" if variance < 1.0 else ""
    return (
        f"--eval-episodes {eval_episodes}: {'at most ' if more else ''}{variance:.2f} times the variance at {cost:.2f} "
        f"times the cost of a run, so {pairs} pairs{least} and {compute} compute for the same precision"
    )


def _change(times: float, smaller: str, *, limit: bool) -> str:
    """Return a factor as a change in percent; if `limit` is true, the factor is an upper bound."""
    bound = "" if not limit else "at least " if times <= 1.0 else "at most "
    return f"{bound}{100 * abs(1.0 - times):.0f} % {smaller if times <= 1.0 else 'more'}"


# --- power tables ----------------------------------------------------------------------------------------------------
# Power tables for a known spread: one table per pair correlation, all from the same draws.


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


def check_varied(known: Known) -> Known:
    """Return the spread; raises UsageError if it is 0, because planning needs a positive spread."""
    if known.sd == 0.0:
        raise UsageError(f"{known.source}: their outcomes do not differ at all, but planning needs a positive spread")
    return known


def answer(known: Known, replicates: int, question: PowerQuestion, rows: Sequence[int] = ROWS) -> PowerAnswer:
    """Compute power tables for `rows` and `replicates`; the seed is derived from the question."""
    rhos = RHO if known.rho is None else (known.rho, *(rho for rho in RHO if rho != known.rho))
    tables = power_tables(known, rhos, sorted({*rows, replicates}), question)
    eval_episodes = None if known.noise is None else _with_best(known.noise, tables[0])
    return PowerAnswer(known=known, replicates=replicates, tables=tables, eval_episodes=eval_episodes)


def _with_best(noise: EvaluationNoise, table: PowerTable) -> EvalEpisodesAnswer:
    """Recompute `table` for the best number of evaluation episodes instead of the measured number."""
    times = math.sqrt(noise.variance_times(noise.next_eval_episodes))
    limits = table.limits and (table.limits[0] * times, table.limits[1] * times)
    needed = replicates_needed(table.sd * times, limits, table.question, _generator(table.question))
    return EvalEpisodesAnswer(
        eval_episodes=noise.components.eval_episodes, share=noise.components.share, cost_share=noise.cost_share,
        best=noise.next_eval_episodes, sd=table.sd * times, cost_times=noise.cost_times(noise.next_eval_episodes),
        needed=needed,
    )  # fmt: skip


def _generator(question: PowerQuestion, replicates: Sequence[int] = ()) -> Generator:
    """Return a generator seeded by the question without its fields `positions_matter` and `futility`.

    Answers that differ only in these fields thus use the same draws, so they do not differ by simulation error.
    """
    asked = msgspec.to_builtins(question)
    del asked["positions_matter"], asked["futility"]
    digest = hashlib.sha256(msgspec.json.encode([asked, list(replicates)])).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def spreads(known: Known, rhos: Sequence[float]) -> tuple[PairSpread, ...]:
    """Return the spread of the observed pairs, if there are any, then the spread for each correlation in `rhos`."""
    supposed = tuple(assumed(known.sd, rho, known.df) for rho in rhos)
    if known.sd_pairs is None or known.df_pairs is None:
        return supposed
    return (observed(known.sd, known.sd_pairs, known.df_pairs), *supposed)


def power_tables(
    known: Known, rhos: Sequence[float], replicates: Sequence[int], question: PowerQuestion
) -> tuple[PowerTable, ...]:
    """Compute a table for each of the `spreads`, from the same draws."""
    return power_tables_of(
        spreads(known, rhos), replicates, question, _generator(question, replicates)
    )


# --- power text ------------------------------------------------------------------------------------------------------
# Power in words: what a number of seeds can detect, what a margin needs, and the table of both.


def power_text(found: PowerAnswer) -> str:
    """Return an answer as text: the number of seeds, two sentences per pair correlation, then the table."""
    known, question = found.known, found.tables[0].question
    df = f", {known.df} degrees of freedom" if known.df else ""
    margin = with_unit(f"{question.margin:g}", known.unit)
    needed = sorted({table.needed.replicates or MOST_NAMED + 1 for table in found.tables})
    ends = dict.fromkeys((needed[0], needed[-1]))
    few = " to ".join(_count(count if count <= MOST_NAMED else None) for count in ends)
    similar = ", depending on how similar the two runs of a pair are" if len(needed) > 1 else ""
    lines = [
        f"To find a difference of {margin} with 80 % power: {few} seeds{similar}.", "",
        f"Run SD {with_unit(significant(known.sd, 3), known.unit)} ({known.source}{df}); margin {margin}; alpha "
        f"{question.alpha:g} shared by {counted(question.comparisons, 'comparison')}.",
    ]
    if known.rho is None and known.sd_pairs is None:
        lines.append("Pair correlation unknown: it depends on how much of the shared randomness survives training.")
    for index, table in enumerate(found.tables):
        row = next(row for row in table.rows if row.replicates == found.replicates)
        lines += ["", f"Pair correlation {table.rho:.2g}{_where_from(known, table) if index == 0 else ''}:"]
        lines += [f"  {_resolves(row, known.unit)}", f"  {_needs(table.needed, margin)}"]
    return "\n".join([*lines, *_on_episodes(found, margin), "", *table_lines(found.tables, known.unit)])


def _on_episodes(found: PowerAnswer, margin: str) -> list[str]:
    """Describe the effect of changing the number of evaluation episodes; [] if the evaluation noise is unknown."""
    eval_episodes, table = found.eval_episodes, found.tables[0]
    if eval_episodes is None or found.known.noise is None:
        return []
    lines = ["", f"Evaluation noise is {share_text(found.known.noise)} of the variance, with "
                 f"{eval_episodes.eval_episodes} episodes "
             f"that make up {eval_episodes.cost_share:.0%} of the cost of a run."]  # fmt: skip
    if eval_episodes.best == eval_episodes.eval_episodes:
        return [*lines, f"  {next_text(found.known.noise)}."]
    before, after = table.needed.replicates, eval_episodes.needed.replicates
    sd, seen = significant(eval_episodes.sd, 3), significant(table.sd, 3)
    compute = f", {after * eval_episodes.cost_times / before:.2f} times the compute" if before and after else ""
    return [
        *lines,
        f"  With --eval-episodes {eval_episodes.best} the SD of differences is {sd} instead of {seen}, and "
        f"a run costs {eval_episodes.cost_times:.2f} times as much:",
        f"  {_needs(eval_episodes.needed, margin).removesuffix('.')} instead of {_count(before)}{compute}.",
    ]


def _where_from(known: Known, table: PowerTable) -> str:
    """Return the source of the first table's pair correlation in parentheses; "" if the correlation is unknown."""
    if known.sd_pairs is not None:
        sd = significant(table.sd, 3)
        return f" (from observed pairs, whose differences have an SD of {sd} with {known.df_pairs} degrees of freedom)"
    return "" if known.rho is None else " (given)"


def _resolves(row: PowerRow, unit: str) -> str:
    if row.smallest is None:
        return f"{counted(row.replicates, 'seed')} are too few for a verdict, which needs {LEAST_PAIRS}."
    looks = ", ".join(map(str, row.looks))
    smallest = with_unit(significant(row.smallest), unit)
    short = f" EQUIVALENT needs {LEAST_EQUIVALENCE_PAIRS} pairs." if row.replicates < LEAST_EQUIVALENCE_PAIRS else ""
    return (
        f"{row.replicates} seeds (looks at {looks}) find a difference of {smallest}"
        f"{_range(row.smallest_low, row.smallest_high)} with 80 % power, and a difference of the margin with "
        f"{row.power:.0%}.{short}{_stops(row)}"
    )


def _stops(row: PowerRow) -> str:
    """Describe the costs and savings of stopping for futility; "" if the plan has no such stopping."""
    if row.stops is None or row.expected is None:
        return ""
    lost = 100.0 * (row.power - row.stops.power)
    return (
        f" Stopping for futility costs {lost / 100.0:.3f} of that power. On average it uses "
        f"{row.stops.expected_none:.1f} seeds instead of {row.stops.expected_none_without:.1f} if nothing differs, and "
        f"{row.stops.expected:.1f} instead of {row.expected:.1f} if the difference equals the margin."
    )


def _count(number: int | None) -> str:
    return "more than 10,000" if number is None else str(number)


def _needs(needed: ReplicatesNeeded, margin: str) -> str:
    if needed.low == needed.high == needed.replicates:
        return f"A difference of {margin} needs {_count(needed.replicates)} seeds."
    return (
        f"A difference of {margin} needs about {_count(needed.replicates)} seeds (80 % range {_count(needed.low)} to "
        f"{_count(needed.high)})."
    )


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" (80 % range {significant(low)} to {significant(high)})"


def table_lines(tables: Sequence[PowerTable], unit: str) -> list[str]:
    """Return a table of the smallest difference and the power at the margin, by seeds and pair correlation."""
    margin = tables[0].question.margin
    digits = digits_for(margin)
    head = ["seeds", "looks", *(f"rho {table.rho:.2g}" for table in tables)]
    rows = [head]
    for same in zip(*(table.rows for table in tables), strict=True):
        cells = [
            "no verdict" if row.smallest is None else f"{row.smallest:.{digits}f} / {row.power:.0%}" for row in same
        ]
        rows.append([str(same[0].replicates), ",".join(map(str, same[0].looks)), *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return [
        f"Smallest difference{f' in {unit}' if unit else ''} found with 80 % power / power at "
        f"{with_unit(f'{margin:g}', unit)}:",
        *("  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows),
    ]


class KnownSD(msgspec.Struct, frozen=True):
    """The SD of paired differences, in the unit of differences, and the page that has it."""

    sd: float
    source: str


def design_power_line(design: Design, run_sd: float | None, known: KnownSD | None = None) -> str:
    """Describe the difference that a design can detect with its looks; "" if it decides nothing or has no maximum.

    `run_sd` is the SD between runs of one group, from a calibration, or None. Pairs are assumed to be uncorrelated.
    Without a calibration, `known` is the SD of paired differences from evidence that comes with the package.
    """
    if not design.boundaries or design.anytime_after is not None:
        return ""
    question = PowerQuestion(
        margin=design.margin, alpha=design.alpha, groups=design.positions, comparisons=len(design.comparisons),
        looks=design.looks, positions_matter=design.positions_matter,
        futility=design.futility.power if design.futility is not None else 0.0,
    )  # fmt: skip
    plan = scheme(design.looks[-1], design.looks, question)
    simulation = Simulation(plan, _generator(question), _FEW_PATHS)
    smallest = simulation.smallest_effect
    if smallest is None:
        return ""
    if run_sd is None and known is not None:
        found = design.outcome.difference(significant(smallest * known.sd))
        return f"Finds a difference of about {found} with 80 % power (SD of pairs {known.sd:g}, from {known.source})."
    if run_sd is None:
        sds = significant(sd_of_differences(smallest, 0.0))
        return f"Finds a difference of {sds} run-to-run SDs with 80 % power; your SD is unknown (esper-ab calibrate)."
    margin = design.margin / sd_of_differences(run_sd, 0.0)
    once, twice = (
        simulation.with_stops(times * margin, margin)[0] if plan.futility_p else simulation.power(times * margin)
        for times in (1.0, 2.0)
    )  # fmt: skip
    runs = with_unit(significant(run_sd, 3), design.outcome.apart)
    return f"Run-to-run SD {runs}: power {100 * once:.0f} % at the margin, {100 * twice:.0f} % at twice the margin."
