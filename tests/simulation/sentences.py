"""Made-up comparisons of every kind, and what in their words, numbers and requirements contradicts the rest."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec
import numpy as np
from support.outcomes.compared_designs import A, B, compared, design, lost, pairs_of

from esper_ab.design.design import Boundary, Design, Futility, extended
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
    seen: Counter[str] = Counter()
    broken = []
    for index in range(number * PIECE, (number + 1) * PIECE):
        found = drawn(np.random.default_rng([rng_seed, index]))
        seen[str(found.verdict)] += 1
        broken += [f"comparison {index}: {wrong}" for wrong in contradictions(found)]
    return seen, broken


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
    gone = sorted({int(r) for r in rng.integers(0, 26, rng.choice([0, 0, 1, 3]))} & set(range(len(d))))
    pairs = [pair for pair in pairs_of(levels + d, levels) if pair.replicate not in gone]
    halves = []
    for half in lost(*((r, None, None) for r in gone)).replicates:
        side, other = ("a", "b") if rng.integers(2) else ("b", "a")
        seen = levels[half.replicate] + float(rng.normal()) if rng.integers(2) else None  # None: cancelled
        halves.append(msgspec.structs.replace(half, **{other: seen, f"failed_{side}": True, f"failed_{other}": False}))
    same = bool(rng.integers(2)) and all(pair.a == pair.b for pair in pairs)
    return _compared(rng, rule, pairs, len(d), lost=Lost(replicates=tuple(halves)), same_records=same)


def _compared(rng: np.random.Generator, rule: Design, data: Data, complete: int, **changes: object) -> Comparison:
    findings = tuple(one for one in _FINDINGS if rng.random() < 0.05)
    planned = max(rule.looks, default=complete) if rule.anytime_after is None else complete
    return compared(rule, data, complete=complete, planned=max(planned, 1), findings=findings, **changes)


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
    )
    return _compared(rng, rule, Samples(a=60.0 + d, b=60.0 + b), 26)


def _counted(rng: np.random.Generator, rule: Design) -> Comparison:
    """Pairs of runs that came to 0 or 1, or to 0 or 100 %, of two chances, with a correlation."""
    one = float(rng.choice([1.0, 100.0]))
    n = int(rng.integers(1, 27))
    luck = rng.random((2, n))
    same = rng.random(n) < rng.choice([0.0, 0.9])
    luck[1, same] = luck[0, same]
    ends = one * (luck < rng.choice([0.0, 0.1, 0.5, 0.95, 1.0], (2, 1)))
    outcome = msgspec.structs.replace(rule.outcome, unit="%" if one == 100.0 else "", low=None, high=None)
    measures = msgspec.structs.replace(rule.measures, outcome=outcome)
    rule = msgspec.structs.replace(rule, margin=rule.margin * one / 8.0, measures=measures)
    return _compared(rng, rule, pairs_of(*ends), n)


def _design(rng: np.random.Generator) -> Design:
    looks = list(_NOMINAL)[rng.integers(len(_NOMINAL))]
    early, adjusted, matters, stops = (bool(one) for one in rng.integers(2, size=4))
    rule = msgspec.structs.replace(
        _planned(looks, int(rng.choice([1, 3]))),
        early_stop=early,
        margin=float(rng.choice([0.5, 2.0, 6.0])),
        adjusted=adjusted,
        positions_matter=adjusted or matters,
    )
    kind = str(rng.choice(["looks", "looks", "extended", "open-ended"]))
    if kind == "open-ended":
        return msgspec.structs.replace(rule, looks=(), boundaries=(), anytime_after=0)
    if early and len(looks) > 1 and stops:
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


def contradictions(found: Comparison) -> Iterator[str]:
    """Write every contradiction between verdict, numbers, sentence, headline and requirements."""
    yield from _of_numbers(found)
    yield from _of_the_sentence(found)
    yield from _of_the_headline(found)
    yield from _of_requirements(found)
    yield from _of_the_stop(found)
    yield from _of_counts(found)


def _of_counts(found: Comparison) -> Iterator[str]:
    """Pairs add up, and runs that form none are never called so."""
    told = _PAIRS.search(found.headline)
    if told is not None:
        ahead, of, ties = (int(number or 0) for number in told.groups())
        behind = sum((pair.a - pair.b) * found.estimate < 0.0 for pair in found.pairs[: found.used])
        if not ahead + behind + ties == of == found.used:
            yield f"{ahead} + {behind} + {ties} of {found.used} pairs: {found.headline}"
    said = " ".join((found.headline, found.sentence, found.rule, *found.caveats))
    if found.question.design.test == "welch" and re.search(r"\bpairs?\b", said):
        yield f"pairs of runs that form none: {said}"


def _of_the_stop(found: Comparison) -> Iterator[str]:
    """A stop for futility claims nothing, is said once and everywhere, and prints an interval inside the margin."""
    stopped = found.progress.decision == "futile"
    margin = found.question.design.margin
    if stopped and found.verdict in CLAIMED:
        yield f"{found.verdict} of what was stopped for futility"
    if (found.inconclusive == "futile") != (stopped and found.verdict is Verdict.INCONCLUSIVE and not found.capped_by):
        yield f"{found.inconclusive} where futility stopped: {stopped}"
    said = "Stopped for futility" in found.sentence, "stopped for futility" in found.headline
    if said != (found.inconclusive == "futile",) * 2:
        yield f"{found.inconclusive}: {found.sentence} {found.headline}"
    printed = _STOPPED.search(found.sentence)
    if printed is not None:
        low, high = map(float, printed.groups())
        yield from _rounded(printed.groups(), found.futility[:2])
        if not -margin < low <= high < margin or found.used < LEAST_PAIRS:
            yield f"futile within {margin} prints {low} to {high} of {found.used} pairs"
        if found.low is not None and (found.low > high or found.high < low):
            yield f"futility interval {low} to {high} beside {found.low} to {found.high}"


def _of_numbers(found: Comparison) -> Iterator[str]:
    verdict = found.verdict
    estimate = found.estimate
    low = found.low
    high = found.high
    margin = found.question.design.margin
    if None not in (estimate, low, high) and not low <= estimate <= high:
        yield f"the estimate {estimate} is outside of its interval {low} to {high}"
    if verdict in (*UP, *DOWN):
        sign = 1.0 if verdict in UP else -1.0
        if low is None or high is None or min(sign * low, sign * high) <= 0.0 or sign * estimate <= 0.0:
            yield f"{verdict} beside {estimate}, {low} to {high}"
    if verdict in SMALL:
        kept = found.simultaneous if verdict in BELOW else (low, high, found.level)
        if kept[0] is None or not -margin < kept[0] <= kept[1] < margin:
            yield f"{verdict} within {margin} beside {kept[0]} to {kept[1]}"
        if found.used < LEAST_EQUIVALENCE_PAIRS or abs(estimate) >= margin:
            yield f"{verdict} with {found.used} pairs and {estimate}"
    yield from _of_losses(found)


def _of_losses(found: Comparison) -> Iterator[str]:
    verdict = found.verdict
    few = len(found.data) < LEAST_PAIRS
    if (verdict is Verdict.NO_INFERENCE) != (few and verdict not in (Verdict.BLOCKED, Verdict.IDENTICAL)):
        yield f"{verdict} with {len(found.data)} pairs"
    if found.imputed is not None and verdict in CLAIMED and not found.imputed.survives:
        yield f"{verdict} that lost runs overturn"


def _of_the_sentence(found: Comparison) -> Iterator[str]:
    verdict = found.verdict
    margin = found.question.design.margin
    if not found.sentence.startswith(str(verdict)):
        yield f"{verdict} begins with {found.sentence[:20]}"
    printed = _INTERVAL.search(found.sentence)
    if printed is None:
        if verdict in CLAIMED:
            yield f"{verdict} prints no interval"
        return
    yield from _rounded(printed.group(2, 3), (found.low, found.high))
    if verdict not in CLAIMED:
        return
    low, high = map(float, printed.group(2, 3))
    estimate = float(re.search(r" = ([-+]?[\d.]+)", found.sentence)[1])
    if not low - 0.005 <= estimate <= high + 0.005:
        yield f"prints {estimate} outside of {low} to {high}"
    if (verdict in UP and not min(low, estimate) > 0.0) or (verdict in DOWN and not max(high, estimate) < 0.0):
        yield f"{verdict} prints {estimate}, {low} to {high}"
    if verdict in BELOW and (at_once := _ALL_AT_ONCE.search(found.sentence)):
        low = float(at_once[1])
        high = float(at_once[2])
    if verdict in SMALL and not -margin < low <= high < margin:
        yield f"{verdict} within {margin} prints {low} to {high}"


def _rounded(printed: Sequence[str], values: Sequence[float]) -> Iterator[str]:
    for text, value in zip(printed, values, strict=True):
        digits = len(text.partition(".")[2])
        if abs(float(text) - value) > 0.5000001 * 10.0**-digits + 1e-9:
            yield f"prints {text} for {value}"


def _of_the_headline(found: Comparison) -> Iterator[str]:
    verdict = found.verdict
    margin = found.question.design.margin
    said = found.headline
    starts = {**dict.fromkeys(UP, f"{A} is better than {B}"), **dict.fromkeys(DOWN, f"{A} is worse than {B}")}
    starts |= {Verdict.EQUIVALENT: f"{A} and {B} are equivalent", Verdict.INCONCLUSIVE: "Not decided"}
    starts |= {Verdict.NO_INFERENCE: ("Nothing ", "Too few ")}
    if not said.startswith(starts.get(verdict, "")):
        yield f"{verdict}: {said}"
    for words, verdicts in ((" is better than ", UP), (" is worse than ", DOWN)):
        if (words in said) != (verdict in verdicts):
            yield f"{verdict} says{words}: {said}"
    span = _SPAN.search(said)
    if span is None:
        if verdict in CLAIMED:
            yield f"{verdict} without an interval: {said}"
        return
    low = float(span[2]) * (-1.0 if span[3] else 1.0)
    high = float(span[4]) * (-1.0 if span[5] == " worse" else 1.0)
    spread = low < high or found.high - found.low < _POINT
    inside = -margin < low and high < margin
    clear = low > 0.0
    if (verdict in (*UP, *DOWN) and not (clear and spread)) or (verdict in SMALL and not (inside and spread)):
        yield f"{verdict} beside {low} to {high}: {said}"
    if "includes 0" in said and not low <= 0.0 <= high:
        yield f"0 is said to be in {low} to {high}: {said}"


def _of_requirements(found: Comparison) -> Iterator[str]:
    """A requirement holds only where verdict, estimate and interval say so; the stronger implies the weaker."""
    margin = found.question.design.margin
    verdict = found.verdict
    for left, right, sign in ((A, B, 1.0), (B, A, -1.0)):
        held = {one for one in RELATIONS if holds(Requirement(left=left, relation=one, right=right), found)}
        better, worse = (UP, DOWN) if sign > 0 else (DOWN, UP)
        expected = {"better-than": verdict in better, "worse-than": verdict in worse}
        expected["equivalent-to"] = verdict in SMALL or (verdict is Verdict.IDENTICAL and "equivalent-to" in held)
        for relation, expects in expected.items():
            if (relation in held) != expects:
                yield f'"{left} {relation} {right}" is {relation in held} beside {verdict}'
        if held & {"better-than", "equivalent-to"} and "not-worse-than" not in held:
            yield f"{sorted(held)} and not not-worse-than"
        if "not-worse-than" in held and verdict is not Verdict.IDENTICAL:
            low = found.low if sign > 0 else -found.high
            if low <= -margin or (found.used < LEAST_EQUIVALENCE_PAIRS and "better-than" not in held):
                yield f"not-worse-than beside {low} and {found.used} pairs"
