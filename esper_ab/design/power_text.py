"""Power in words: what a number of seeds can detect, what a margin needs, and the table of both."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.contracts.wording import counted, significant
from esper_ab.design.design import Design
from esper_ab.design.episodes_text import next_text, share_text
from esper_ab.design.pairs_needed import MOST_NAMED
from esper_ab.design.power import (
    PowerQuestion,
    PowerRow,
    PowerTable,
    ReplicatesNeeded,
    Simulation,
    scheme,
    sd_of_differences,
)
from esper_ab.design.power_tables import Known, PowerAnswer, generator_of
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.text import digits_for, with_unit

_FEW_PATHS = 10_000  # for one line of a plan; standard error of a power of 0.8: 0.004


def power_text(found: PowerAnswer) -> str:
    """Return an answer as text: the number of seeds, two sentences per pair correlation, then the table."""
    known = found.known
    question = found.tables[0].question
    df = f", {known.df} degrees of freedom" if known.df else ""
    margin = with_unit(f"{question.margin:g}", known.unit)
    needed = sorted({table.needed.replicates or MOST_NAMED + 1 for table in found.tables})
    ends = dict.fromkeys((needed[0], needed[-1]))
    few = " to ".join(_count(count if count <= MOST_NAMED else None) for count in ends)
    similar = ", depending on how similar the two runs of a pair are" if len(needed) > 1 else ""
    lines = [
        f"To find a difference of {margin} with 80 % power: {few} seeds{similar}.",
        "",
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
    eval_episodes = found.eval_episodes
    table = found.tables[0]
    if eval_episodes is None or found.known.noise is None:
        return []
    lines = [
        "",
        f"Evaluation noise is {share_text(found.known.noise)} of the variance, with "
        f"{eval_episodes.eval_episodes} episodes "
        f"that make up {eval_episodes.cost_share:.0%} of the cost of a run.",
    ]
    if eval_episodes.best == eval_episodes.eval_episodes:
        return [*lines, f"  {next_text(found.known.noise)}."]
    before = table.needed.replicates
    after = eval_episodes.needed.replicates
    sd = significant(eval_episodes.sd, 3)
    seen = significant(table.sd, 3)
    if before and after:
        compute = f", {after * eval_episodes.cost_times / before:.2f} times the compute"
    else:
        compute = ""
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
    if row.replicates < LEAST_EQUIVALENCE_PAIRS:
        short = f" EQUIVALENT needs {LEAST_EQUIVALENCE_PAIRS} pairs."
    else:
        short = ""
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
    if low is None or high is None:
        return ""
    return f" (80 % range {significant(low)} to {significant(high)})"


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
        margin=design.margin,
        alpha=design.alpha,
        groups=design.positions,
        comparisons=len(design.comparisons),
        looks=design.looks,
        positions_matter=design.positions_matter,
        futility=design.futility.power if design.futility is not None else 0.0,
    )
    plan = scheme(design.looks[-1], design.looks, question)
    simulation = Simulation(plan, generator_of(question), _FEW_PATHS)
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
    )
    runs = with_unit(significant(run_sd, 3), design.outcome.apart)
    return f"Run-to-run SD {runs}: power {100 * once:.0f} % at the margin, {100 * twice:.0f} % at twice the margin."
