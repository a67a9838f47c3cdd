"""Runs needed for a correct verdict by `--outcome-over`, resampled from stored runs.

Writes the tables of docs/evidence/statistics-on-training.md from docs/evidence/benchmarks/windows.json, to which
`scripts/outcome_windows --add EXPERIMENT…` adds runs; nothing is trained. It takes some minutes.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations

import numpy as np
from benchmarks.markdown import table
from outcome_windows import PAGE, STORED, Cell, by_setup, listed, outcomes
from resampled_errors import errors_table
from resampled_plans import MOST_PAIRS, chance, fewest_pairs

from esper_ab.contracts.outcome_window import in_window
from esper_ab.design import pairs_needed
from esper_ab.design.power import sd_of_differences
from esper_ab.design.window_advice import WINDOW, GroupChange, window_advice
from esper_ab.stats.curve_change import curve_change
from esper_ab.stats.distributions import t_isf
from esper_ab.stats.floats import Floats
from esper_ab.stats.paired_difference import paired_difference

BEGIN = "<!-- resampling tables -->\n"
END = "<!-- /resampling tables -->"
ERRORS_BEGIN = "<!-- errors table -->\n"
ERRORS_END = "<!-- /errors table -->"
BUDGETS = (6, 8, 10, 14, 20, 30)  # pairs of a plan
PARTS = ("evaluation", "last-tenth", WINDOW, "blend")  # blend: the mean of evaluation and last third
# By what the groups of a couple must differ to count. The first two favour the outcome that they name, because chance
# made some of its differences large enough; the mean of both t statistics favours neither.
SELECTIONS = {"evaluation": ("evaluation",), "last third": (WINDOW,), "mean t of both": ("evaluation", WINDOW)}
ALPHA = 0.05  # two-sided, of a paired t over all stored pairs
POWER = 0.8
SURE = 0.99  # chance of the evaluation from which on nothing can be saved at a budget
FEW_PAIRS = 8  # with so few nothing can be saved: a claim needs six
LESS = 2.0 / 3.0  # of the pairs
UNSURE = 0.2  # chance below which a budget decides too seldom to compare
MARGINS = (0.5, 1.0, 2.0)  # SDs of the evaluations of runs
CALIBRATION_RUNS = 20
CALIBRATIONS = 200  # drawn from each group
_SEED = 66


@dataclass(frozen=True, kw_only=True)
class Couple:
    """Two groups of one task and setup, with the differences of their common seeds by outcome, [pairs]."""

    task: str
    setup: str
    a: Cell
    b: Cell
    differences: dict[str, Floats]
    chances: dict[tuple[str, int], float] = field(default_factory=dict)  # of a correct claim, by outcome and pairs

    def differs(self, parts: Sequence[str]) -> bool:
        """Whether the stored pairs differ by the mean of their t statistics by these outcomes."""
        pairs = self.differences[parts[0]].size
        t = statistics.fmean(self.t(part) for part in parts)
        return abs(t) > float(t_isf(ALPHA / 2.0, pairs - 1))

    def t(self, part: str) -> float:
        """Return the paired t over all stored pairs; 0.0 if there is none."""
        values = self.differences[part]
        return paired_difference(values, np.zeros(values.size)).t or 0.0

    def chance(self, part: str, pairs: int) -> float:
        """Return the chance of a correct claim: in the direction of the mean of all stored pairs by the evaluation."""
        key = (part, pairs)
        if key not in self.chances:
            direction = float(self.differences["evaluation"].mean())
            self.chances[key] = chance(self.differences[part], pairs, direction)
        return self.chances[key]

    def needed(self, part: str, least_chance: float = POWER) -> float:
        """Return the pairs of the smallest plan with this chance; infinity if none of those tried has it."""
        pairs = fewest_pairs(lambda pairs: self.chance(part, pairs), least_chance)
        return math.inf if pairs is None else pairs

    def ratio(self, part: str) -> float | None:
        """Return the pairs needed by an outcome, relative to the evaluation; None if both need too many."""
        needed = self.needed(part)
        needed_by_evaluation = self.needed("evaluation")
        if math.isinf(needed) and math.isinf(needed_by_evaluation):
            return None
        return needed / needed_by_evaluation

    def same_sign(self, part: str) -> bool:
        """Whether the stored pairs differ in the same direction by this outcome as by the evaluation."""
        return float(self.differences[part].mean()) * float(self.differences["evaluation"].mean()) > 0.0


def main() -> None:
    """Write the tables."""
    cells = json.loads(STORED.read_text(encoding="utf-8"))["cells"]
    couples = list(couples_of(cells))
    write_errors(cells, couples)
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    tables = [
        stored_runs(cells, couples),
        "",
        *power_table(couples),
        "",
        *budget_table(couples),
        "",
        *advice_table(cells, couples),
    ]
    lines = "\n".join(tables)
    PAGE.write_text(f"{head}{BEGIN}{lines}\n{END}{tail}", encoding="utf-8")


def write_errors(cells: Sequence[Cell], couples: Sequence[Couple]) -> None:
    """Write the table of false claims on these outcomes, by the evaluation."""
    runs, differences = defaultdict(list), defaultdict(list)
    for cell in cells:
        runs[cell["task"]].append(outcomes_of(cell, "evaluation"))
    for couple in couples:
        differences[couple.task].append(couple.differences["evaluation"])
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(ERRORS_BEGIN)
    lines = "\n".join(errors_table(runs, differences))
    PAGE.write_text(f"{head}{ERRORS_BEGIN}{lines}\n{ERRORS_END}{rest.partition(ERRORS_END)[2]}", encoding="utf-8")


def stored_runs(cells: Sequence[Cell], couples: Sequence[Couple]) -> str:
    """Say how many runs there are, and how many of them are independent."""
    runs = sum(len(cell["seeds"]) for cell in cells)
    independent = sum(len(groups) - 1 for groups in by_setup(cells).values())
    sizes = sorted({len(cell["seeds"]) for cell in cells})
    return (
        f"Stored: {runs} runs of {len(cells)} groups, in {len(by_setup(cells))} settings, on {listed(sizes, str)} "
        f"seeds each. They make {len(couples)} couples, of which {independent} do not follow from others."
    )


def outcomes_of(cell: Cell, part: str) -> Floats:
    """Return the outcome of every run of a group."""
    if part == "blend":
        return (outcomes_of(cell, "evaluation") + outcomes_of(cell, WINDOW)) / 2.0
    return np.array(outcomes(cell, part))


def couples_of(cells: Sequence[Cell]) -> Iterator[Couple]:
    """Yield every two groups of a task and setup that have the same seeds."""
    for (task, setup), groups in by_setup(cells).items():
        for a, b in combinations(groups, 2):
            if a["seeds"] == b["seeds"]:
                differences = {part: outcomes_of(a, part) - outcomes_of(b, part) for part in PARTS}
                yield Couple(task=task, setup=setup, a=a, b=b, differences=differences)


def different(couples: Sequence[Couple], selection: str) -> list[Couple]:
    """Return the couples whose groups differ by a selection."""
    return [couple for couple in couples if couple.differs(SELECTIONS[selection])]


def number(value: float) -> str:
    """Write a number of pairs."""
    return f"> {MOST_PAIRS}" if math.isinf(value) else f"{value:.3g}"


def ratio_of(value: float) -> str:
    """Write a ratio of numbers of pairs."""
    return "inf" if math.isinf(value) else f"{value:.2f}"


def power_table(couples: Sequence[Couple]) -> Iterator[str]:
    """Yield the pairs for a correct verdict in 80 %, by task and by the outcomes that show a difference."""
    rows = []
    for selection in SELECTIONS:
        chosen = different(couples, selection)
        for task in dict.fromkeys(couple.task for couple in chosen):
            here = [couple for couple in chosen if couple.task == task]
            rows.append((selection, task, *needs_of(here)))
        rows.append((selection, "all", *needs_of(chosen)))
        slow = [couple for couple in chosen if couple.needed("evaluation") > FEW_PAIRS]
        if slow:
            rows.append((selection, f"evaluation needs more than {FEW_PAIRS}", *needs_of(slow)))
    yield from table(
        "different by | task | couples | pairs for 80 %, median: evaluation / tenth / third / blend | "
        "pairs, evaluation = 1, median: tenth / third / blend | needs at most 2/3 | needs more | other sign | "
        "no other needs fewer: evaluation / tenth / third / blend",
        rows,
    )


def needs_of(couples: Sequence[Couple]) -> Iterator[str]:
    """Yield the cells of a row about the pairs that these couples need."""
    ratios = {part: [couple.ratio(part) for couple in couples] for part in PARTS[1:]}
    known_ratios = {part: [ratio for ratio in ratios[part] if ratio is not None] for part in ratios}
    fewest = [min(couple.needed(part) for part in PARTS) for couple in couples]
    yield str(len(couples))
    yield listed([statistics.median(couple.needed(part) for couple in couples) for part in PARTS], number)
    yield listed([statistics.median(known_ratios[part]) for part in ratios], ratio_of)
    yield listed([sum(ratio <= LESS for ratio in known_ratios[part]) for part in ratios], str)
    yield listed([sum(ratio > 1.0 for ratio in known_ratios[part]) for part in ratios], str)
    yield listed([sum(not couple.same_sign(part) for couple in couples) for part in ratios], str)
    winners = [
        sum(couple.needed(part) == least for couple, least in zip(couples, fewest, strict=True)) for part in PARTS
    ]
    yield listed(winners, str)


def budget_table(couples: Sequence[Couple]) -> Iterator[str]:
    """Yield the chance of a correct verdict by budget, and the pairs with which other outcomes have that chance."""
    rows = []
    for selection in SELECTIONS:
        chosen = different(couples, selection)
        for pairs in BUDGETS:
            here = [couple for couple in chosen if UNSURE <= couple.chance("evaluation", pairs) < SURE]
            if not here:
                continue
            chances = [statistics.fmean(couple.chance(part, pairs) for couple in here) for part in PARTS]
            needed = [
                statistics.median(couple.needed(part, couple.chance("evaluation", pairs)) for couple in here)
                for part in PARTS[1:]
            ]
            rows.append(
                (
                    selection,
                    pairs,
                    f"{len(here)} of {len(chosen)}",
                    listed(chances, "{:.0%}".format),
                    listed(needed, number),
                )
            )
    yield from table(
        "different by | pairs | couples | correct, mean: evaluation / tenth / third / blend | "
        "pairs for the evaluation's chance, median: tenth / third / blend",
        rows,
    )


def advice_table(cells: Sequence[Cell], couples: Sequence[Couple]) -> Iterator[str]:
    """Yield how often the rule of `calibrate` recommends the last third, and what that saves and changes.

    Runs are drawn from a group with replacement. Couples whose groups differ by the mean t count by how often a
    calibration of one group, or an experiment with both, recommends the window.
    """
    rows = []
    chosen = different(couples, "mean t of both")
    for margin in MARGINS:
        shares = {group_of(cell): recommended_share(cell, margin) for cell in cells}
        one, both, never = [], [], []
        for couple in chosen:
            share_a, share_b = shares[group_of(couple.a)], shares[group_of(couple.b)]
            one.append((share_a + share_b) / 2.0)
            both.append(share_a * share_b)
            never.append(1.0 - one[-1])
        groups = f"{statistics.fmean(shares.values()):.0%}"
        for source, recommended, weights in (
            ("one group is calibrated", groups, one),
            ("both groups are known", "-", both),
            ("not recommended by one group", "-", never),
        ):
            rows.append((f"{margin:g} SD", source, recommended, *effects(chosen, weights, margin)))
    yield from table(
        "margin | last third recommended if | of groups | couples, by weight | "
        "pairs for 80 %, evaluation = 1, median | needs more | has the other sign | "
        "difference moves by more than the margin",
        rows,
    )


def group_of(cell: Cell) -> tuple[str, str, str]:
    """Return what identifies a stored group."""
    return cell["task"], cell["setup"], cell["group"]


def effects(couples: Sequence[Couple], weights: Sequence[float], margin: float) -> Iterator[str]:
    """Yield the weight of all couples, their ratio of pairs, and the shares of those that the last third misleads."""
    total = math.fsum(weights)
    ratios = [(couple.ratio(WINDOW), weight) for couple, weight in zip(couples, weights, strict=True)]
    yield f"{total:.1f}"
    yield ratio_of(weighted_median([(ratio, weight) for ratio, weight in ratios if ratio is not None]))
    misled = (
        lambda couple: (couple.ratio(WINDOW) or 0.0) > 1.0,
        lambda couple: not couple.same_sign(WINDOW),
        lambda couple: shift_of(couple) > margin,
    )
    for is_misled in misled:
        weight = math.fsum(weight for couple, weight in zip(couples, weights, strict=True) if is_misled(couple))
        yield f"{weight / total:.0%}" if total else "-"


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Return the value at half of the weight of (value, weight) pairs."""
    half = math.fsum(weight for _, weight in values) / 2.0
    reached = 0.0
    for value, weight in sorted(values):
        reached += weight
        if reached >= half:
            return value
    return math.nan


def shift_of(couple: Couple) -> float:
    """Return by how many SDs of runs' evaluations the difference by the last third is another one."""
    sds = [statistics.stdev(cell["evaluations"]) for cell in (couple.a, couple.b)]
    shift = abs(float(couple.differences[WINDOW].mean() - couple.differences["evaluation"].mean()))
    return shift / max(sds) if max(sds) else math.inf


def recommended_share(cell: Cell, margin_in_sds: float) -> float:
    """Return the share of calibrations of a group that recommend the last third."""
    evaluations = outcomes_of(cell, "evaluation")
    margin = margin_in_sds * float(evaluations.std(ddof=1))
    if margin == 0.0:
        return 0.0
    ends = [list(in_window(curve, WINDOW)) for curve in cell["curves"]]
    means = outcomes_of(cell, WINDOW)
    rng = np.random.default_rng([_SEED, len(ends)])
    count = 0
    for _ in range(CALIBRATIONS):
        runs = rng.integers(len(ends), size=CALIBRATION_RUNS)
        count += is_recommended(evaluations[runs], means[runs], [ends[run] for run in runs], margin)
    return count / CALIBRATIONS


def is_recommended(evaluations: Floats, means: Floats, ends: Sequence[Sequence[float]], margin: float) -> bool:
    """Whether a calibration of these runs recommends the last third for a comparison of two groups."""
    change = curve_change(ends)
    if change is None or not evaluations.std() or not means.std():
        return False
    needed = [seeds(float(values.std(ddof=1)) / margin) for values in (means, evaluations)]
    advice = window_advice([GroupChange(group="", change=change)], margin, *needed)
    return advice is not None and advice.finding == "recommended"


def seeds(sd: float) -> int:
    """Return the pairs that find a margin of 1 with runs of this SD, which is rounded to save time."""
    return _seeds(float(f"{sd:.2g}"))


@cache
def _seeds(sd: float) -> int:
    return pairs_needed.fewest_pairs(sd_of_differences(sd, 0.0), 1.0, ALPHA)


if __name__ == "__main__":
    main()
