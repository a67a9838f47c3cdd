"""Made-up comparisons of every kind, and what in their words, numbers and requirements contradicts the rest."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec
import numpy as np
from support.outcomes.compared_designs import A, B, compared, design, lost, pairs_of

from esper_ab.design.design import Boundary, Design, Futility, extended
from esper_ab.design.non_inferiority import NonInferiority
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.pair import Data, Samples
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.question import Lost
from esper_ab.verdict.requirement import RELATIONS, Requirement, holds
from esper_ab.verdict.verdict import Verdict
from simulation.laws import Floats

UP = (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)
DOWN = (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)
BELOW = (Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN)
SMALL = (*BELOW, Verdict.EQUIVALENT)
CLAIMED = (*UP, *DOWN, Verdict.EQUIVALENT)
_NOMINAL = {(8,): (0.05,), (20,): (0.05,), (6, 10): (0.0076, 0.0455), (6, 10, 16, 20): (0.0001, 0.003, 0.013, 0.0435)}
_STOPS = (0.02, 0.07, 0.14)  # one-sided p of futility
_FINDINGS = (
    Finding(kind="baseline", weight="caps equivalence", groups=(), sentence="Both are at chance."),
    Finding(kind="ratio", weight="caps", groups=(), sentence="The policy's ratios exploded."),
    Finding(kind="orders", weight="blocks", groups=(), sentence="Runs had different orders."),
)
_KIND = r"(?:repeated |anytime-valid )?interval(?: \(not [^)]*\))?"
_INTERVAL = re.compile(rf"(\S+) % {_KIND} ([-+]?[\d.]+) to ([-+]?[\d.]+)")
_ALL_AT_ONCE = re.compile(r"simultaneous interval ([-+]?[\d.]+) to ([-+]?[\d.]+)")
_STOPPED = re.compile(r"futility interval ([-+]?[\d.]+) to ([-+]?[\d.]+) lies inside")
_PAIRS = re.compile(r"in (\d+) of (\d+) pairs(?: \((\d+) tied\))?")
_SPAN = re.compile(r"(\S+) % interval,? ([\d.]+)( worse)? to ([\d.]+)( worse| better)?")


PIECE = 500  # comparisons of one piece of work
_POINT = 2e-8  # a narrower interval is one number: what is left of its width is rounding


def check(rng_seed: int, number: int) -> tuple[Counter[str], list[str]]:
    """Verdicts of PIECE comparisons, and every contradiction with the comparison that it is of."""
    verdict_counts: Counter[str] = Counter()
    found_problems = []
    for index in range(number * PIECE, (number + 1) * PIECE):
        comparison = drawn(np.random.default_rng([rng_seed, index]))
        verdict_counts[str(comparison.verdict)] += 1
        found_problems += [f"comparison {index}: {problem}" for problem in contradictions(comparison)]
    return verdict_counts, found_problems


def drawn(rng: np.random.Generator) -> Comparison:
    """One comparison: any kind of design, of outcomes, of losses, of findings."""
    rule = _design(rng)
    kind = rng.random()
    if kind < 0.15:
        return _unpaired(rng, rule)
    if kind < 0.35:
        return _counted(rng, rule)
    d = _differences(rng)
    levels = 60.0 + 5.0 * np.sin(np.arange(len(d)))
    lost_replicates = sorted({int(r) for r in rng.integers(0, 26, rng.choice([0, 0, 1, 3]))} & set(range(len(d))))
    pairs = [pair for pair in pairs_of(levels + d, levels) if pair.replicate not in lost_replicates]
    halves = []
    for lost_pair in lost(*((r, None, None) for r in lost_replicates)).replicates:
        side, other_side = ("a", "b") if rng.integers(2) else ("b", "a")
        outcome_left = levels[lost_pair.replicate] + float(rng.normal()) if rng.integers(2) else None  # None: cancelled
        halves.append(
            msgspec.structs.replace(
                lost_pair, **{other_side: outcome_left, f"failed_{side}": True, f"failed_{other_side}": False}
            )
        )
    is_same = bool(rng.integers(2)) and all(pair.a == pair.b for pair in pairs)
    return _compared(rng, rule, pairs, len(d), lost=Lost(replicates=tuple(halves)), same_records=is_same)


def _compared(
    rng: np.random.Generator, rule: Design, data: Data, complete_replicates: int, **changes: object
) -> Comparison:
    findings = tuple(finding for finding in _FINDINGS if rng.random() < 0.05)
    planned_replicates = (
        max(rule.looks, default=complete_replicates) if rule.anytime_after is None else complete_replicates
    )
    return compared(
        rule, data, complete=complete_replicates, planned=max(planned_replicates, 1), findings=findings, **changes
    )


def _unpaired(rng: np.random.Generator, rule: Design) -> Comparison:
    """Runs that form no pairs."""
    d = _differences(rng)
    b = rng.standard_normal(int(rng.integers(1, 27)))
    rule = msgspec.structs.replace(
        rule,
        test="welch",
        positions=1,
        adjusted=False,
        early_stop=True,
        looks=(26,),
        anytime_after=None,
        futility=None,
        boundaries=_planned((20,), 1).boundaries,
        comparisons=rule.comparisons[:1],
        not_worse=msgspec.UNSET,
    )
    return _compared(rng, rule, Samples(a=60.0 + d, b=60.0 + b), 26)


def _counted(rng: np.random.Generator, rule: Design) -> Comparison:
    """Pairs of runs that came to 0 or 1, or to 0 or 100 %, of two chances, with a correlation."""
    success_value = float(rng.choice([1.0, 100.0]))
    n = int(rng.integers(1, 27))
    luck = rng.random((2, n))
    same = rng.random(n) < rng.choice([0.0, 0.9])
    luck[1, same] = luck[0, same]
    ends = success_value * (luck < rng.choice([0.0, 0.1, 0.5, 0.95, 1.0], (2, 1)))
    outcome = msgspec.structs.replace(rule.outcome, unit="%" if success_value == 100.0 else "", low=None, high=None)
    measures = msgspec.structs.replace(rule.measures, outcome=outcome)
    rule = msgspec.structs.replace(rule, margin=rule.margin * success_value / 8.0, measures=measures)
    return _compared(rng, rule, pairs_of(*ends), n)


def _design(rng: np.random.Generator) -> Design:
    looks = list(_NOMINAL)[rng.integers(len(_NOMINAL))]
    is_early, is_adjusted, has_positions, stops = (bool(value) for value in rng.integers(2, size=4))
    rule = msgspec.structs.replace(
        _planned(looks, int(rng.choice([1, 3]))),
        early_stop=is_early,
        margin=float(rng.choice([0.5, 2.0, 6.0])),
        adjusted=is_adjusted,
        positions_matter=is_adjusted or has_positions,
    )
    kind = str(rng.choice(["looks", "looks", "not worse", "extended", "open-ended"]))
    if kind == "not worse":
        return msgspec.structs.replace(rule, not_worse=NonInferiority(nominal_p=_NOMINAL[looks]))
    if kind == "open-ended":
        return msgspec.structs.replace(rule, looks=(), boundaries=(), anytime_after=0)
    if is_early and len(looks) > 1 and stops:
        bounds = Futility(power=0.8, nominal_p=(*_STOPS[: len(looks) - 1], 0.0))
        rule = msgspec.structs.replace(rule, futility=bounds)
    return extended(rule, looks[-1]) if kind == "extended" else rule


@cache
def _planned(looks: tuple[int, ...], comparisons: int) -> Design:
    boundaries = tuple(
        Boundary(open=count, alpha=0.05 / count, nominal_p=tuple(p / count for p in _NOMINAL[looks]))
        for count in range(comparisons, 0, -1)
    )
    return design(20, comparisons, looks=looks, boundaries=boundaries)


def _differences(rng: np.random.Generator) -> Floats:
    """Of up to 26 pairs: tiny or large, at the margin, reversed after a while, with crashes, with ties, constant."""
    n = int(rng.integers(0, 27))
    d = rng.choice([0.0, 0.3, 0.5, 1.0, 1.99, 2.0, 4.0, 6.0]) + rng.choice([1e-9, 1e-3, 0.05, 0.5, 3.0]) * (
        rng.standard_normal(n)
    )
    d = d * rng.choice([-1.0, 1.0, 1e-3])
    d[rng.choice([6, 10, 16, 26]) :] *= rng.choice([1.0, 1.0, -3.0, 20.0])
    d[rng.random(n) < rng.choice([0.0, 0.0, 0.1])] -= 25.0
    grain = rng.choice([0.0, 0.0, 0.257, 2.0])
    return np.asarray(np.round(d / grain) * grain if grain else d)


def contradictions(comparison: Comparison) -> Iterator[str]:
    """Write every contradiction between verdict, numbers, sentence, headline and requirements."""
    yield from _of_numbers(comparison)
    yield from _of_the_sentence(comparison)
    yield from _of_the_headline(comparison)
    yield from _of_requirements(comparison)
    yield from _of_the_stop(comparison)
    yield from _of_counts(comparison)


def _of_counts(comparison: Comparison) -> Iterator[str]:
    """Pairs add up, and runs that form none are never called so."""
    counted_pairs = _PAIRS.search(comparison.headline)
    if counted_pairs is not None:
        pairs_ahead, pair_count, ties = (int(number or 0) for number in counted_pairs.groups())
        pairs_behind = sum(
            (pair.a - pair.b) * comparison.estimate < 0.0 for pair in comparison.pairs[: comparison.used]
        )
        if not pairs_ahead + pairs_behind + ties == pair_count == comparison.used:
            yield f"{pairs_ahead} + {pairs_behind} + {ties} of {comparison.used} pairs: {comparison.headline}"
    text = " ".join((comparison.headline, comparison.sentence, comparison.rule, *comparison.caveats))
    if comparison.question.design.test == "welch" and re.search(r"\bpairs?\b", text):
        yield f"pairs of runs that form none: {text}"


def _of_the_stop(comparison: Comparison) -> Iterator[str]:
    """A stop for futility claims nothing, is said once and everywhere, and prints an interval inside the margin."""
    stopped = comparison.progress.decision == "futile"
    margin = comparison.question.design.margin
    if stopped and comparison.verdict in CLAIMED:
        yield f"{comparison.verdict} of what was stopped for futility"
    if (comparison.inconclusive == "futile") != (
        stopped and comparison.verdict is Verdict.INCONCLUSIVE and not comparison.capped_by
    ):
        yield f"{comparison.inconclusive} where futility stopped: {stopped}"
    stop_mentions = "Stopped for futility" in comparison.sentence, "stopped for futility" in comparison.headline
    if stop_mentions != (comparison.inconclusive == "futile",) * 2:
        yield f"{comparison.inconclusive}: {comparison.sentence} {comparison.headline}"
    printed_power = _STOPPED.search(comparison.sentence)
    if printed_power is not None:
        low, high = map(float, printed_power.groups())
        yield from _rounded(printed_power.groups(), comparison.futility[:2])
        if not -margin < low <= high < margin or comparison.used < LEAST_PAIRS:
            yield f"futile within {margin} prints {low} to {high} of {comparison.used} pairs"
        if comparison.low is not None and (comparison.low > high or comparison.high < low):
            yield f"futility interval {low} to {high} beside {comparison.low} to {comparison.high}"


def _of_numbers(comparison: Comparison) -> Iterator[str]:
    verdict = comparison.verdict
    estimate = comparison.estimate
    low = comparison.low
    high = comparison.high
    margin = comparison.question.design.margin
    if None not in (estimate, low, high) and not low <= estimate <= high:
        yield f"the estimate {estimate} is outside of its interval {low} to {high}"
    if verdict in (*UP, *DOWN):
        sign = 1.0 if verdict in UP else -1.0
        if low is None or high is None or min(sign * low, sign * high) <= 0.0 or sign * estimate <= 0.0:
            yield f"{verdict} beside {estimate}, {low} to {high}"
    if verdict in SMALL:
        small_interval = comparison.simultaneous if verdict in BELOW else (low, high, comparison.level)
        if small_interval[0] is None or not -margin < small_interval[0] <= small_interval[1] < margin:
            yield f"{verdict} within {margin} beside {small_interval[0]} to {small_interval[1]}"
        if comparison.used < LEAST_EQUIVALENCE_PAIRS or abs(estimate) >= margin:
            yield f"{verdict} with {comparison.used} pairs and {estimate}"
    yield from _of_losses(comparison)


def _of_losses(comparison: Comparison) -> Iterator[str]:
    verdict = comparison.verdict
    few = len(comparison.data) < LEAST_PAIRS
    if (verdict is Verdict.NO_INFERENCE) != (few and verdict not in (Verdict.BLOCKED, Verdict.IDENTICAL)):
        yield f"{verdict} with {len(comparison.data)} pairs"
    if comparison.imputed is not None and verdict in CLAIMED and not comparison.imputed.survives:
        yield f"{verdict} that lost runs overturn"


def _of_the_sentence(comparison: Comparison) -> Iterator[str]:
    verdict = comparison.verdict
    margin = comparison.question.design.margin
    if not comparison.sentence.startswith(str(verdict)):
        yield f"{verdict} begins with {comparison.sentence[:20]}"
    printed_interval = _INTERVAL.search(comparison.sentence)
    if printed_interval is None:
        if verdict in CLAIMED:
            yield f"{verdict} prints no interval"
        return
    yield from _rounded(printed_interval.group(2, 3), (comparison.low, comparison.high))
    if verdict not in CLAIMED:
        return
    low, high = map(float, printed_interval.group(2, 3))
    estimate = float(re.search(r" = ([-+]?[\d.]+)", comparison.sentence)[1])
    if not low - 0.005 <= estimate <= high + 0.005:
        yield f"prints {estimate} outside of {low} to {high}"
    if (verdict in UP and not min(low, estimate) > 0.0) or (verdict in DOWN and not max(high, estimate) < 0.0):
        yield f"{verdict} prints {estimate}, {low} to {high}"
    if verdict in BELOW and (simultaneous_text := _ALL_AT_ONCE.search(comparison.sentence)):
        low = float(simultaneous_text[1])
        high = float(simultaneous_text[2])
    if verdict in SMALL and not -margin < low <= high < margin:
        yield f"{verdict} within {margin} prints {low} to {high}"


def _rounded(printed_numbers: Sequence[str], values: Sequence[float]) -> Iterator[str]:
    for text, value in zip(printed_numbers, values, strict=True):
        digits = len(text.partition(".")[2])
        if abs(float(text) - value) > 0.5000001 * 10.0**-digits + 1e-9:
            yield f"prints {text} for {value}"


def _of_the_headline(comparison: Comparison) -> Iterator[str]:
    verdict = comparison.verdict
    margin = comparison.question.design.margin
    headline = comparison.headline
    starts = {**dict.fromkeys(UP, f"{A} is better than {B}"), **dict.fromkeys(DOWN, f"{A} is worse than {B}")}
    starts |= {Verdict.EQUIVALENT: f"{A} and {B} are equivalent", Verdict.INCONCLUSIVE: "Not decided"}
    starts |= {Verdict.NO_INFERENCE: ("Nothing ", "Too few ")}
    if not headline.startswith(starts.get(verdict, "")):
        yield f"{verdict}: {headline}"
    for words, verdicts in ((" is better than ", UP), (" is worse than ", DOWN)):
        if (words in headline) != (verdict in verdicts):
            yield f"{verdict} says{words}: {headline}"
    span = _SPAN.search(headline)
    if span is None:
        if verdict in CLAIMED:
            yield f"{verdict} without an interval: {headline}"
        return
    low = float(span[2]) * (-1.0 if span[3] else 1.0)
    high = float(span[4]) * (-1.0 if span[5] == " worse" else 1.0)
    spread = low < high or comparison.high - comparison.low < _POINT
    inside = -margin < low and high < margin
    clear = low > 0.0
    if (verdict in (*UP, *DOWN) and not (clear and spread)) or (verdict in SMALL and not (inside and spread)):
        yield f"{verdict} beside {low} to {high}: {headline}"
    if "includes 0" in headline and not low <= 0.0 <= high:
        yield f"0 is said to be in {low} to {high}: {headline}"


def _of_requirements(comparison: Comparison) -> Iterator[str]:
    """A requirement holds only where verdict, estimate and interval say so; the stronger implies the weaker."""
    margin = comparison.question.design.margin
    verdict = comparison.verdict
    for left_group, right_group, sign in ((A, B, 1.0), (B, A, -1.0)):
        held_relations = {
            relation_name
            for relation_name in RELATIONS
            if holds(Requirement(left=left_group, relation=relation_name, right=right_group), comparison)
        }
        better_verdicts, worse_verdicts = (UP, DOWN) if sign > 0 else (DOWN, UP)
        expected = {"better-than": verdict in better_verdicts, "worse-than": verdict in worse_verdicts}
        expected["equivalent-to"] = verdict in SMALL or (
            verdict is Verdict.IDENTICAL and "equivalent-to" in held_relations
        )
        for relation, expects in expected.items():
            if (relation in held_relations) != expects:
                yield f'"{left_group} {relation} {right_group}" is {relation in held_relations} beside {verdict}'
        if held_relations & {"better-than", "equivalent-to"} and "not-worse-than" not in held_relations:
            yield f"{sorted(held_relations)} and not not-worse-than"
        if "not-worse-than" in held_relations and verdict is not Verdict.IDENTICAL:
            low = comparison.low if sign > 0 else -comparison.high
            if low <= -margin or (comparison.used < LEAST_EQUIVALENCE_PAIRS and "better-than" not in held_relations):
                yield f"not-worse-than beside {low} and {comparison.used} pairs"
