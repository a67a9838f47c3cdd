"""How a comparison will probably end, in words: the chance of each verdict by the true difference, before any run.

The chances are those of one comparison at its initial share of alpha, without lost runs, for normal outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from esper_ab.contracts.wording import significant
from esper_ab.design.any_shape_text import seeds_needed
from esper_ab.design.claim_endings import DIFFERENCES, ClaimEndings, claim_endings, rows_of
from esper_ab.design.design import Design
from esper_ab.design.open_ended import open_ended_seeds
from esper_ab.design.pairs_needed import MOST_NAMED, fewest_pairs
from esper_ab.design.plan_simulation import simulation_of
from esper_ab.design.power import sd_of_differences
from esper_ab.design.simulation import MARGINS, Endings, Simulation, endings_at_margins
from esper_ab.design.table_text import aligned
from esper_ab.stats.text import digits_for, signed, with_unit

_PROBABLY = 0.5  # a plan that ends undecided more often says so
_SELDOM = 0.5  # a plan that shows less often that equal groups hardly differ may stop for futility instead
_WORTHWHILE = 0.1  # share of the seeds that stops must save where nothing differs
_FUTILITY = 0.8  # least power at the margin that the proposed stops keep

Cost = Callable[[float], str]  # the duration of a number of seeds, in words


class AssumedSpread(msgspec.Struct, frozen=True, kw_only=True):
    """The standard deviation of paired differences that the chances assume, and the margin, in the same unit."""

    sd: float
    margin: float
    unit: str = ""

    @property
    def effect(self) -> float:
        """The margin in standard deviations."""
        return self.margin / self.sd


def endings_table(
    title: str, endings: Sequence[Endings], margin: float, unit: str, cost: Cost | None = None
) -> list[str]:
    """Return a title and a table of the chance of each verdict and of the mean number of seeds.

    `endings` are those at the true differences of `MARGINS`.
    """
    rows = [
        ["", *(significant(times * margin) for times in MARGINS)],
        ["better", *(_percent(ending.better) for ending in endings)],
        ["worse", *(_percent(ending.worse) for ending in endings)],
        ["smaller than the margin", *(_percent(ending.small) for ending in endings)],
        ["undecided", *(_percent(ending.undecided) for ending in endings)],
        ["seeds on average", *(f"{ending.replicates:.1f}" for ending in endings)],
    ]
    if cost is not None:
        rows.append(["time", *(cost(ending.replicates) for ending in endings)])
    unit_words = f" in {unit}" if unit else ""
    return [f"{title} by the true difference{unit_words}:", *aligned(rows)]


def claim_table(
    title: str, endings: Sequence[ClaimEndings], margin: float, unit: str, cost: Cost | None = None
) -> list[str]:
    """Return the table of a plan that asks whether a group is not worse; `endings` are those at `DIFFERENCES`."""
    rows = [["", *(signed(times * margin, digits_for(margin)) for times in DIFFERENCES)]]
    rows += [[words, *map(_percent, shares)] for words, shares in rows_of(endings).items()]
    rows.append(["seeds on average", *(f"{ending.replicates:.1f}" for ending in endings)])
    if cost is not None:
        rows.append(["time", *(cost(ending.replicates) for ending in endings)])
    in_unit = f" in {unit}" if unit else ""
    return [f"{title} by the true difference{in_unit} (below 0, the group is worse):", *aligned(rows)]


def endings_lines(design: Design, spread: AssumedSpread, cost: Cost) -> list[str]:
    """Return the table for a plan; [] if the plan decides nothing or has no maximum."""
    if not design.boundaries or design.anytime_after is not None:
        return []
    simulation = simulation_of(design, sd=spread.sd)
    if design.non_inferiority is not None:
        claimed = claim_endings(simulation, spread.effect)
        return claim_table("Chance of each verdict", claimed, spread.margin, spread.unit, cost)
    endings = endings_at_margins(simulation, spread.effect)
    return endings_table("Chance of each verdict", endings, spread.margin, spread.unit, cost)


def advice(design: Design, spread: AssumedSpread, cost: Cost) -> list[str]:
    """Return sentences on what would be cheaper or decide more often, most important first; [] if nothing would."""
    anytime = design.anytime_after is not None
    if not design.comparisons or not (design.boundaries or anytime):
        return []
    columns = (design.positions if design.adjusted else 1) - design.prior_df
    if design.non_inferiority is not None:
        return _advice_on_claim(design, spread, cost, columns)
    fewest = seeds_needed(design, spread.sd, columns)
    if anytime:
        is_known = fewest <= MOST_NAMED and not design.any_shape
        return [_price_of_no_maximum(design, spread.effect, "the margin", cost)] if is_known else []
    enough = f"more than {MOST_NAMED:,} seeds"
    if fewest <= MOST_NAMED:
        enough = f"about {fewest} seeds ({cost(fewest)})"
    simulation = simulation_of(design, sd=spread.sd)
    sentences = []
    at_margin = simulation.endings(spread.effect, spread.effect)
    if at_margin.undecided > _PROBABLY:
        margin = with_unit(f"{spread.margin:g}", spread.unit)
        sentences.append(
            f"A true difference of {margin}, the margin, would probably stay undecided "
            f"({_percent(at_margin.undecided)}); {enough} would find it with 80 % power."
        )
    if design.futility is None and len(design.looks) > 1:
        sentences += _propose_futility(design, simulation, spread)
    return sentences


def _advice_on_claim(design: Design, spread: AssumedSpread, cost: Cost, columns: int) -> list[str]:
    """Return a sentence if a plan would probably not show that a group is not worse, although the groups do not differ.

    A plan without a maximum continues until it shows something.
    """
    if design.anytime_after is not None:
        return []
    endings = claim_endings(simulation_of(design, sd=spread.sd), spread.effect)
    undecided_share = endings[DIFFERENCES.index(0.0)].undecided
    if undecided_share <= _PROBABLY:
        return []
    fewest = seeds_needed(design, spread.sd, columns)
    enough = f"more than {MOST_NAMED:,} seeds"
    if fewest <= MOST_NAMED:
        enough = f"about {fewest} seeds ({cost(fewest)})"
    return [
        f"Groups that do not differ would probably stay undecided ({_percent(undecided_share)}); {enough} would show "
        "with 80 % power that one is not worse by the margin."
    ]


def open_ended_line(design: Design, cost: Cost) -> str:
    """Return the price of a plan without a maximum if the SD of runs is unknown, at a difference of one such SD.

    Return "" for a plan that has a maximum or does not ask for a difference.
    """
    if design.anytime_after is None or not design.comparisons or design.non_inferiority is not None:
        return ""
    return _price_of_no_maximum(design, 1.0 / sd_of_differences(1.0, 0.0), "one run-to-run SD", cost)


def _price_of_no_maximum(design: Design, effect: float, difference: str, cost: Cost) -> str:
    """Say how many seeds an open-ended plan uses to find a difference of `effect` SDs of pairs, and a plan with a
    maximum.
    """
    columns = design.positions if design.adjusted else 1
    fewest = fewest_pairs(1.0, effect, design.alpha / len(design.comparisons), columns)
    seeds = open_ended_seeds(effect, design.evidence * len(design.comparisons), columns, fewest)
    return (
        f"To find a difference of {difference}, --seeds auto needs {seeds.mean:.0f} seeds on average "
        f"({cost(seeds.mean)}), and up to {seeds.most} in 4 of 5 experiments; --seeds {fewest} ({cost(fewest)}) finds "
        "it with 80 % power."
    )


def _propose_futility(design: Design, simulation: Simulation, spread: AssumedSpread) -> list[str]:
    """Propose stops for futility, with their price, if the plan would seldom show that equal groups hardly differ."""
    endings_without = simulation.endings(0.0, spread.effect)
    if endings_without.small >= _SELDOM:
        return []
    stops = simulation_of(design, futility=_FUTILITY, sd=spread.sd)
    with_stops = stops.endings(0.0, spread.effect)
    if with_stops.replicates > (1.0 - _WORTHWHILE) * endings_without.replicates:
        return []
    power, _ = stops.with_stops(spread.effect, spread.effect)
    lost_power = 100.0 * (simulation.power(spread.effect) - power)
    return [
        f"If nothing differs, --futility {_FUTILITY:g} ends after {with_stops.replicates:.0f} seeds on average instead "
        f"of {endings_without.replicates:.0f}, but shows that in {_percent(with_stops.small)} instead of "
        f"{_percent(endings_without.small)} of experiments; it costs {lost_power:.0f} points of power at the margin."
    ]


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"
