"""The simulated procedure against the package's own: the same decisions and intervals, experiment by experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from esper_ab.design.design import Design
from esper_ab.stats.pair import Pair
from esper_ab.verdict import follow as sequential
from simulation import laws, procedure, rules
from simulation.laws import Array, Size
from simulation.rules import Rule

TOLERANCE = 1e-9  # points, relative to the size of the interval: rounding only
_EFFECTS = (0.0, 0.5, 1.0, 2.0)  # in outcome SDs: so that every kind of decision occurs
_BLOCK = 25


def check(rule: Rule, experiments: int, rng_seed: int) -> Counter[str]:
    """Decisions by kind, of `experiments` of all laws; AssertionError where the two differ."""
    found: Counter[str] = Counter()
    for block in range(-(-experiments // _BLOCK)):
        rng = np.random.default_rng([rng_seed, block])
        law = laws.LAWS[block % len(laws.LAWS)]
        size = Size(min(_BLOCK, experiments - block * _BLOCK), rule.horizon, rule.groups)
        values = laws.outcomes(law, (0.0, 0.3, 0.6)[block % 3], size, rng)
        values[:, 0] += _EFFECTS[block % len(_EFFECTS)] * laws.OUTCOME_SD
        found += compare(rule, values)
    return found


def compare(rule: Rule, values: Array, lost: Collection[int] = ()) -> Counter[str]:
    """The same for given outcomes [N, groups, R], without the pairs of the replicates `lost`."""
    design = rules.design(rule)
    mine = procedure.follow(design, rules.differences(rule, values), rules.sides(rule), rule.horizon, lost=lost)
    seen: Counter[str] = Counter()
    for index, outcomes in enumerate(values):
        theirs = _follow(rule, design, outcomes, lost)
        for comparison, course in enumerate(theirs):
            at = f"{rule.name}, experiment {index}, comparison {comparison}"
            place = (index, comparison)
            kinds = {"crossed": mine.crossed, "equivalent": mine.equivalent, "futile": mine.futile}
            decision = next((kind for kind, found in kinds.items() if found[place]), "open")
            _same(at, decision, course.decision)
            direction = int(np.sign(mine.mean[place])) if decision == "crossed" else 0
            _same(at, direction, course.direction)
            last = course.looks[-1]
            _same(at, int(mine.replicates[place]), last.pairs)
            _same(at, last.replicates if decision != "open" else None, course.decided_at)
            low = -np.inf if last.low is None else last.low
            high = np.inf if last.high is None else last.high
            _near(at, (mine.low[place], mine.high[place]), (low, high))
            low = -np.inf if last.simultaneous_low is None else last.simultaneous_low
            high = np.inf if last.simultaneous_high is None else last.simultaneous_high
            _near(at, (mine.simultaneous_low[place], mine.simultaneous_high[place]), (low, high))
            _same(at, bool(mine.small[place]), course.decision == "crossed" and last.small)
            seen[course.decision] += 1
    return seen


def _follow(rule: Rule, design: Design, outcomes: Array, lost: Collection[int]) -> list[sequential.Course]:
    pairs = {}
    for contrast, (a, b), sides in zip(design.comparisons, rules.members(rule), rules.sides(rule), strict=True):
        pairs[contrast] = [
            Pair(
                replicate=r,
                a=float(outcomes[a, r]),
                b=float(outcomes[b, r]),
                position_a=sides[r][0],
                position_b=sides[r][1],
            )
            for r in range(rule.horizon)
            if r not in lost
        ]
    found = sequential.courses_of(design, pairs, rule.horizon)
    return [found[contrast] for contrast in design.comparisons]


def _same(at: str, mine: object, theirs: object) -> None:
    if mine != theirs:
        raise AssertionError(f"{at}: {mine!r} simulated, {theirs!r} by esper_ab.verdict.follow")


def _near(at: str, mine: tuple[float, float], theirs: tuple[float, float]) -> None:
    if not np.allclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE):
        raise AssertionError(f"{at}: interval {mine} simulated, {theirs} by esper_ab.verdict.follow")
