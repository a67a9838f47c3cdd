"""Power in words: what a number of replicates resolves, what a margin needs, and the table of both."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.design.design import Design
from esper_ab.design.episodes_text import next_text, share_text
from esper_ab.design.power import PowerQuestion, PowerRow, PowerTable, ReplicatesNeeded
from esper_ab.design.power_tables import RHO, Known, PowerAnswer, power_tables
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.text import counted, digits_for, significant, with_unit


def power_text(found: PowerAnswer) -> str:
    """An answer in words: two sentences for each pair correlation, then the table."""
    known, question = found.known, found.tables[0].question
    df = f", {known.df} degrees of freedom" if known.df else ""
    margin = with_unit(f"{question.margin:g}", known.unit)
    lines = [
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
    """What another number of evaluation episodes would change; nothing where nothing is known of evaluation noise."""
    eval_episodes, table = found.eval_episodes, found.tables[0]
    if eval_episodes is None or found.known.noise is None:
        return []
    lines = ["", f"Evaluation noise is {share_text(found.known.noise)} of the variance, with "
                 f"{eval_episodes.eval_episodes} episodes "
             f"that are {eval_episodes.cost_share:.0%} of a run's cost."]  # fmt: skip
    if eval_episodes.best == eval_episodes.eval_episodes:
        return [*lines, f"  {next_text(found.known.noise)}."]
    before, after = table.needed.replicates, eval_episodes.needed.replicates
    sd, seen = significant(eval_episodes.sd, 3), significant(table.sd, 3)
    compute = f", {after * eval_episodes.cost_times / before:.2f} times the compute" if before and after else ""
    return [
        *lines,
        f"  With --eval-episodes {eval_episodes.best} the SD of differences is {sd} in the place of {seen}, and "
        f"a run costs {eval_episodes.cost_times:.2f} times as much:",
        f"  {_needs(eval_episodes.needed, margin).removesuffix('.')} in the place of "
        f"{'more than 10,000' if before is None else before}{compute}.",
    ]


def _where_from(known: Known, table: PowerTable) -> str:
    """How the pair correlation of the first table is known, in brackets; "" when it is not."""
    if known.sd_pairs is not None:
        sd = significant(table.sd, 3)
        return f" (the pairs seen: their differences have an SD of {sd}, {known.df_pairs} degrees of freedom)"
    return "" if known.rho is None else " (known)"


def _resolves(row: PowerRow, unit: str) -> str:
    if row.smallest is None:
        return f"{counted(row.replicates, 'seed')} cannot carry a verdict at all; {LEAST_PAIRS} are the least."
    looks = ", ".join(map(str, row.looks))
    smallest = with_unit(significant(row.smallest), unit)
    short = f" EQUIVALENT takes {LEAST_EQUIVALENCE_PAIRS} pairs." if row.replicates < LEAST_EQUIVALENCE_PAIRS else ""
    return (
        f"{row.replicates} seeds (looks at {looks}) find a difference of {smallest}"
        f"{_range(row.smallest_low, row.smallest_high)} with 80 % power; one of the margin's size with "
        f"{row.power:.0%}.{short}{_stops(row)}"
    )


def _stops(row: PowerRow) -> str:
    """What stops for futility cost and save; "" of a plan without any."""
    if row.stops is None or row.expected is None:
        return ""
    lost = 100.0 * (row.power - row.stops.power)
    return (
        f" Stops for futility cost {lost / 100.0:.3f} of that power and save seeds: {row.stops.expected_none:.1f} "
        f"are used on average where nothing differs (without such stops {row.stops.expected_none_without:.1f}), "
        f"{row.stops.expected:.1f} ({row.expected:.1f}) at the margin."
    )


def _needs(needed: ReplicatesNeeded, margin: str) -> str:
    def count(number: int | None) -> str:
        return "more than 10,000" if number is None else str(number)

    if needed.low == needed.high == needed.replicates:
        return f"{margin} need {count(needed.replicates)} seeds."
    return (
        f"{margin} need about {count(needed.replicates)} seeds (80 % range {count(needed.low)} to "
        f"{count(needed.high)})."
    )


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" (80 % range {significant(low)} to {significant(high)})"


def table_lines(tables: Sequence[PowerTable], unit: str) -> list[str]:
    """A table of the smallest difference with 80 % power and the power at the margin, by replicates and correlation."""
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


def describe_design_power(design: Design, run_sd: float, df: int) -> str:
    """What a design resolves at its own looks when runs differ by `run_sd`, calibrated with `df` degrees."""
    unit = design.outcome.apart
    spread = f"runs differ by {with_unit(significant(run_sd), unit)} (SD, calibrated)"
    if not design.looks:
        return f"{spread}; without a maximum every difference is found"
    question = PowerQuestion(
        margin=design.margin, alpha=design.alpha, groups=design.positions, comparisons=len(design.comparisons),
        looks=design.looks, positions_matter=design.positions_matter,
        futility=design.futility.power if design.futility is not None else 0.0,
    )  # fmt: skip
    tables = power_tables(Known(source="", sd=run_sd, df=df), RHO, [design.looks[-1]], question)
    said = (f"pair correlation {table.rho:g}: {_resolves(table.rows[0], unit)}" for table in tables)
    return f"{spread}. " + " ".join(said)
