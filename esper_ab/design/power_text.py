"""Power in words: what a number of seeds can detect, what a margin needs, and the table of both."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UnsetType

from esper_ab.contracts.claim import Claim
from esper_ab.contracts.wording import counted, significant
from esper_ab.design.claim_words import claim_words
from esper_ab.design.design import Design
from esper_ab.design.endings_text import claim_table, endings_table
from esper_ab.design.episodes_text import next_text, share_text
from esper_ab.design.outcome_windows import window_lines
from esper_ab.design.pairs_needed import MOST_NAMED
from esper_ab.design.plan_simulation import simulation_of
from esper_ab.design.power import PowerRow, PowerTable, ReplicatesNeeded, sd_of_differences
from esper_ab.design.power_tables import Known, PowerAnswer
from esper_ab.design.scheme import PowerQuestion
from esper_ab.design.shape_risk import risk_line
from esper_ab.design.simulation import Simulation
from esper_ab.design.table_text import aligned
from esper_ab.design.window_advice import advice_sentence
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.text import digits_for, with_unit


def power_text(answer: PowerAnswer) -> str:
    """Return an answer as text: the number of seeds, two sentences per pair correlation, then the table."""
    known_spread = answer.known
    question = answer.tables[0].question
    margin = with_unit(f"{question.margin:g}", known_spread.unit)
    sd = with_unit(significant(known_spread.sd, 3), known_spread.unit)
    df = f", {known_spread.df} degrees of freedom" if known_spread.df else ""
    lines = [
        f"{claim_words(question.claim, margin).to_find}: {_seeds_needed(answer.tables)}{_price(answer.tables)}.",
        "",
        f"Run SD {sd} ({known_spread.source}{df}); margin {margin}; alpha "
        f"{question.alpha:g} shared by {counted(question.comparisons, 'comparison')}.",
    ]
    if known_spread.rho is None and known_spread.sd_pairs is None:
        lines.append("Pair correlation unknown: it depends on how much of the shared randomness survives training.")
    if not isinstance(known_spread.shape_risk, UnsetType) and isinstance(question.largest, UnsetType):
        lines.append(risk_line(known_spread.shape_risk, "runs" if known_spread.sd_pairs is None else "differences"))
    for index, table in enumerate(answer.tables):
        row = next(row for row in table.rows if row.replicates == answer.replicates)
        source = _describe_source(known_spread, table) if index == 0 else ""
        lines += [
            "",
            f"Pair correlation {table.rho:.2g}{source}:",
            f"  {_resolves(row, known_spread.unit, question)}",
            f"  {_needs(table.needed, margin, question.claim)}",
        ]
    lines += _describe_episodes(answer, margin)
    lines += ["", *table_lines(answer.tables, known_spread.unit)]
    windows = window_lines(answer.windows, answer.tables, known_spread.unit)
    if windows:
        lines += ["", *windows]
    if answer.window_advice is not None:
        lines.append(advice_sentence(answer.window_advice, question.margin, known_spread.unit))
    if answer.endings or answer.claim_endings:
        seeds = counted(answer.replicates, "seed")
        title = f"Chance of each verdict with {seeds} and pair correlation {answer.tables[0].rho:.2g}"
        if answer.claim_endings:
            lines += ["", *claim_table(title, answer.claim_endings, question.margin, known_spread.unit)]
        else:
            lines += ["", *endings_table(title, answer.endings, question.margin, known_spread.unit)]
    return "\n".join(lines)


def _seeds_needed(tables: Sequence[PowerTable]) -> str:
    """Return "12 seeds", or the range over the pair correlations and its reason."""
    needed_counts = {table.needed.replicates or MOST_NAMED + 1 for table in tables}
    seeds = f"{_name_range(needed_counts)} seeds"
    if len(needed_counts) == 1:
        return seeds
    return f"{seeds}, depending on how similar the two runs of a pair are"


def _price(tables: Sequence[PowerTable]) -> str:
    """Say what claims for any shape cost, as in "; with --shape any, instead of 34"; "" if none are asked for."""
    counts = set()
    for table in tables:
        if isinstance(table.needed_if_same_shape, UnsetType):
            return ""
        counts.add(table.needed_if_same_shape.replicates or MOST_NAMED + 1)
    return f"; that is with --shape any, instead of {_name_range(counts)}"


def _name_range(counts: set[int]) -> str:
    """Return "12", or "12 to 34"."""
    fewest_words = _name_count(min(counts))
    most_words = _name_count(max(counts))
    return fewest_words if len(counts) == 1 else f"{fewest_words} to {most_words}"


def _name_count(replicates: int) -> str:
    return _count(None if replicates > MOST_NAMED else replicates)


def _describe_episodes(answer: PowerAnswer, margin: str) -> list[str]:
    """Describe the effect of changing the number of evaluation episodes; [] if the evaluation noise is unknown."""
    change = answer.eval_episodes
    noise = answer.known.noise
    if change is None or noise is None:
        return []
    lines = [
        "",
        f"Evaluation noise is {share_text(noise)} of the variance, with {change.eval_episodes} episodes "
        f"that make up {_percent(change.cost_share)} of the cost of a run.",
    ]
    if change.best == change.eval_episodes:
        return [*lines, f"  {next_text(noise)}."]
    table = answer.tables[0]
    seeds_before = table.needed.replicates
    seeds_after = change.needed.replicates
    compute = ""
    if seeds_before and seeds_after:
        compute = f", {seeds_after * change.cost_times / seeds_before:.2f} times the compute"
    needs_words = _needs(change.needed, margin, table.question.claim).removesuffix(".")
    return [
        *lines,
        f"  With --eval-episodes {change.best} the SD of differences is {significant(change.sd, 3)} instead of "
        f"{significant(table.sd, 3)}, and a run costs {change.cost_times:.2f} times as much:",
        f"  {needs_words} instead of {_count(seeds_before)}{compute}.",
    ]


def _describe_source(known_spread: Known, table: PowerTable) -> str:
    """Return the source of the first table's pair correlation in parentheses; "" if the correlation is unknown."""
    if known_spread.sd_pairs is not None:
        sd = significant(table.sd, 3)
        return (
            f" (from observed pairs, whose differences have an SD of {sd} with {known_spread.df_pairs} degrees of "
            "freedom)"
        )
    if known_spread.rho is not None:
        return " (given)"
    return ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _resolves(row: PowerRow, unit: str, question: PowerQuestion) -> str:
    claim = question.claim
    for_any_shape = not isinstance(question.largest, UnsetType)
    if row.smallest is None and for_any_shape and row.replicates >= LEAST_PAIRS:
        return f"{row.replicates} seeds can show no difference at all for any shape."
    if row.smallest is None:
        least_pairs = LEAST_PAIRS if claim == "difference" else LEAST_EQUIVALENCE_PAIRS
        return f"{counted(row.replicates, 'seed')} are too few for a verdict, which needs {least_pairs}."
    looks = ", ".join(map(str, row.looks))
    smallest_words = with_unit(significant(row.smallest), unit)
    smallest_range = _range(row.smallest_low, row.smallest_high)
    equivalence_words = ""
    if row.replicates < LEAST_EQUIVALENCE_PAIRS:
        equivalence_words = f" EQUIVALENT needs {LEAST_EQUIVALENCE_PAIRS} pairs."
    words = claim_words(claim, "")
    return (
        f"{row.replicates} seeds (looks at {looks}) {words.finds} a {words.size} of {smallest_words}{smallest_range} "
        f"with 80 % power, and {_margin_phrase(claim)} with {_percent(row.power)}.{equivalence_words}{_stops(row)}"
    )


def _margin_phrase(claim: Claim) -> str:
    return "a difference of the margin" if claim == "difference" else "at your margin"


def _stops(row: PowerRow) -> str:
    """Describe the costs and savings of stopping for futility; "" if the plan has no such stopping."""
    stops = row.stops
    if stops is None or row.expected is None:
        return ""
    lost_percent = 100.0 * (row.power - stops.power)
    return (
        f" Stopping for futility costs {lost_percent / 100.0:.3f} of that power. On average it uses "
        f"{stops.expected_none:.1f} seeds instead of {stops.expected_none_without:.1f} if nothing differs, and "
        f"{stops.expected:.1f} instead of {row.expected:.1f} if the difference equals the margin."
    )


def _count(number: int | None) -> str:
    return "more than 10,000" if number is None else str(number)


def _needs(needed_seeds: ReplicatesNeeded, margin: str, claim: Claim) -> str:
    count = _count(needed_seeds.replicates)
    size = claim_words(claim, margin).size
    if needed_seeds.low == needed_seeds.high == needed_seeds.replicates:
        return f"A {size} of {margin} needs {count} seeds."
    low = _count(needed_seeds.low)
    high = _count(needed_seeds.high)
    return f"A {size} of {margin} needs about {count} seeds (80 % range {low} to {high})."


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" (80 % range {significant(low)} to {significant(high)})"


def table_lines(tables: Sequence[PowerTable], unit: str) -> list[str]:
    """Return a table of the smallest difference and the power at the margin, by seeds and pair correlation."""
    margin = tables[0].question.margin
    digits = digits_for(margin)
    cells = [["seeds", "looks", *(f"rho {table.rho:.2g}" for table in tables)]]
    for rows in zip(*(table.rows for table in tables), strict=True):
        looks = ",".join(map(str, rows[0].looks))
        cells.append([str(rows[0].replicates), looks, *(_cell(row, digits) for row in rows)])
    unit_words = f" in {unit}" if unit else ""
    margin_words = with_unit(f"{margin:g}", unit)
    smallest = claim_words(tables[0].question.claim, margin_words).smallest.format(unit=unit_words)
    title = f"{smallest} with 80 % power / power at {margin_words}:"
    return [title, *aligned(cells)]


def _cell(row: PowerRow, digits: int) -> str:
    if row.smallest is None:
        return "no verdict"
    return f"{row.smallest:.{digits}f} / {_percent(row.power)}"


class KnownSD(msgspec.Struct, frozen=True):
    """The SD of paired differences, in the unit of differences, and what was measured for it."""

    sd: float
    source: str


def design_power_line(design: Design, run_sd: float | None, known_sd: KnownSD | None = None) -> str:
    """Describe the difference that a design can detect with its looks; "" if it decides nothing or has no maximum.

    `run_sd` is the SD between runs of one group, from a calibration, or None. Pairs are assumed to be uncorrelated.
    Without a calibration, `known_sd` is the SD of paired differences from evidence that comes with the package.
    """
    if not design.boundaries or design.anytime_after is not None:
        return ""
    simulation = simulation_of(design, sd=_sd_of_pairs(run_sd, known_sd))
    smallest_effect = simulation.smallest_effect
    if smallest_effect is None or (design.any_shape and run_sd is None and known_sd is None):
        return ""
    finds = "Finds a difference"
    if design.non_inferiority is not None:
        finds = "If the groups do not differ, shows that one is not worse at a margin"
    if run_sd is None and known_sd is not None:
        difference = design.outcome.difference(significant(smallest_effect * known_sd.sd))
        return f"{finds} of about {difference} with 80 % power (SD of pairs {known_sd.sd:g}, from {known_sd.source})."
    if run_sd is None:
        sds = significant(sd_of_differences(smallest_effect, 0.0))
        return f"{finds} of {sds} run-to-run SDs with 80 % power; your SD is unknown (esper-ab calibrate)."
    if run_sd == 0.0:
        return "The runs of the calibration did not differ, so the power of this plan is unknown."
    margin = design.margin / sd_of_differences(run_sd, 0.0)
    percent_at_margin = 100 * _power(simulation, margin, margin)
    percent_at_double = 100 * _power(simulation, 2.0 * margin, margin)
    runs = with_unit(significant(run_sd, 3), design.outcome.apart)
    if design.non_inferiority is not None:
        return (
            f"Run-to-run SD {runs}: if the groups do not differ, a power of {percent_at_margin:.0f} % to show that one "
            "is not worse by the margin."
        )
    return (
        f"Run-to-run SD {runs}: power {percent_at_margin:.0f} % at the margin, {percent_at_double:.0f} % at twice the "
        "margin."
    )


def _sd_of_pairs(run_sd: float | None, known_sd: KnownSD | None) -> float | None:
    """Return the positive SD of paired differences that a sentence assumes; None if it is unknown."""
    if run_sd is not None:
        return sd_of_differences(run_sd, 0.0) or None
    return None if known_sd is None else known_sd.sd


def _power(simulation: Simulation, effect: float, margin: float) -> float:
    """Return the power at `effect`, with stops for futility if the plan has them; both are in SDs of differences."""
    if simulation.scheme.futility_p:
        return simulation.with_stops(effect, margin)[0]
    return simulation.power(effect)
