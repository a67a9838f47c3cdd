"""Pieces of work for a pool: counts of one law and correlation over some experiments. Deterministic by their seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulation import families, laws, naive, procedure, rules
from simulation.laws import OUTCOME_SD, Array, Law, Size
from simulation.rules import MARGIN, Rule

RHOS = (0.0, 0.3, 0.6)
CHUNK = 5_000  # experiments of one task
# True differences, points: none, the margin, and one and two outcome SDs (d = 1, 2)
SHIFTS = {"none": 0.0, "margin": MARGIN, "d=1": OUTCOME_SD, "d=2": 2.0 * OUTCOME_SD}
# "none" is followed as it is used; here, no comparison stops for being equivalent, which would spare false claims
NO_STOP = "none, no stop"
STOP_SPREADS = (1.6, 2.0, 2.6)
SPREADS = (1.2, 1.6, 2.0, 2.6, 3.5)  # SD of a run, points: of a smaller one nothing, of a larger one everything is open
PARTS = ("pairs", "naive", "stops", "positions", "families", "clusters")
Key = tuple[str, str, str, float, str]  # part, rule, law, rho, truth
Tally = dict[Key, dict[str, float]]


@dataclass(frozen=True)
class Task:
    """`part`: one of PARTS; experiments `number` * CHUNK and on."""

    part: str
    law: str
    rho: float
    number: int
    experiments: int
    rng_seed: int

    def rng(self) -> np.random.Generator:
        """Its own stream, by what it is."""
        known = list(laws.NAMED)
        address = [PARTS.index(self.part), known.index(self.law), round(10 * self.rho), self.number]
        return np.random.default_rng([self.rng_seed, *address])


def tasks(
    part: str, these: tuple[Law, ...], experiments: int, rng_seed: int, rhos: tuple[float, ...] = RHOS
) -> Iterator[Task]:
    """All pieces of one part."""
    for law in these:
        for rho in rhos:
            for number in range(-(-experiments // CHUNK)):
                count = min(CHUNK, experiments - number * CHUNK)
                yield Task(part, law.name, rho, number, count, rng_seed)


def work(task: Task) -> Tally:
    """Counts of one piece."""
    law = laws.law_named(task.law)
    parts = (_pairs, _naive, _stops, _positions, _families, _clusters)
    return dict(zip(PARTS, parts, strict=True))[task.part](task, law)


def _pairs(task: Task, law: Law) -> Tally:
    values = laws.outcomes(law, task.rho, Size(task.experiments, rules.HORIZON), task.rng())
    tally: Tally = {}
    for rule in rules.PAIR_RULES:
        for truth, shift in SHIFTS.items():
            tally[task.part, rule.name, task.law, task.rho, truth] = _count(rule, values, (shift, 0.0))
        tally[task.part, rule.name, task.law, task.rho, NO_STOP] = _count(rule, values, (0.0, 0.0), stop=False)
    return tally


def _stops(task: Task, law: Law) -> Tally:
    """Each rule as it is and with stops for futility, on the same runs: nothing differs, or one group by the margin."""
    tally: Tally = {}
    for rule in rules.STOP_RULES:
        values = laws.outcomes(law, task.rho, Size(task.experiments, rule.horizon, rule.groups), task.rng())
        for sd in STOP_SPREADS:
            for truth in ("none", "margin"):
                effects = (SHIFTS[truth], *(0.0,) * (rule.groups - 1))
                for one in (rule, rules.FUTILE_RULES[rule.name]):
                    key = (task.part, one.name, task.law, task.rho, f"{truth}, SD {sd:g}")
                    tally[key] = _count(one, values * (sd / OUTCOME_SD), effects)
    return tally


def _positions(task: Task, law: Law) -> Tally:
    """Plans that adjust for positions and plans that need not, on the same runs."""
    values = laws.outcomes(law, task.rho, Size(task.experiments, rules.FREE_RULES[-1].horizon), task.rng())
    tally: Tally = {}
    for rule in (*rules.PAIR_RULES[: len(rules.FREE_RULES)], *rules.FREE_RULES):
        part = values[..., : rule.horizon]
        tally[task.part, rule.name, task.law, task.rho, NO_STOP] = _count(rule, part, (0.0, 0.0), stop=False)
        for truth in ("margin", "d=1"):
            tally[task.part, rule.name, task.law, task.rho, truth] = _count(rule, part, (SHIFTS[truth], 0.0))
    return tally


def _families(task: Task, law: Law) -> Tally:
    """Several tasks and their mean under one alpha: their differences are independent, or half of each is common."""
    rng, tally = task.rng(), Tally()
    for family in families.RULES:
        patterns = families.PATTERNS if law.name == "normal" else dict(list(families.PATTERNS.items())[:2])
        for common in (0.0, 0.5):
            values = families.differences(family, law, task.rho, task.experiments, common, rng)
            for pattern, multiple in patterns.items():
                truth = families.truths(family, multiple)
                for sd in SPREADS[:-1] if law.name == "normal" else SPREADS[1:3]:
                    key = (task.part, family.name, task.law, task.rho, f"{pattern}, {common:g} common, SD {sd:g}")
                    d = values * (sd / OUTCOME_SD) + truth[:, None]
                    tally[key] = _counted(families.follow(family, d), truth)
    return tally


def _clusters(task: Task, law: Law) -> Tally:
    """Pairs in clusters, nothing differs: the means of clusters, as we take them, and all pairs as independent."""
    rng, tally = task.rng(), Tally()
    drawn = {one.name: families.clustered(one, law, task.experiments, rng) for one in families.CLUSTERINGS}
    for what, ways in (drawn | {"own best": families.own_best(law, task.experiments, rng)}).items():
        for way, d in ways.items():
            claims = float(families.t_claims(d).sum())
            key = (task.part, f"{what}, {way}", task.law, task.rho, "none")
            tally[key] = {"experiments": float(task.experiments), "claims": claims, "wrong": claims}
    return tally


def _count(
    rule: Rule, values: Array, effects: tuple[float, ...], *, stop: bool = True
) -> dict[str, float]:
    """Experiments with a claim (any comparison crossed) or none, a wrong one (a true null, or the wrong sign), an
    interval that misses (of each comparison; of any), equivalence declared (at any; at any that differs by the margin
    or more), any claim that is false ("false": wrong, or smaller than the margin where it is not); an interval of all
    at once that misses; sum of replicates used; a stop for futility (at any; at any that differs by the margin or
    more), and a difference of that size found.
    """
    truth = rules.truths(rule, effects)
    d = rules.differences(rule, values) + truth[:, None]
    return _counted(
        procedure.follow(rules.design(rule), d, rules.sides(rule), rule.horizon, equivalence=stop), truth
    )


def _counted(found: procedure.Courses, truth: Array) -> dict[str, float]:
    """The same of courses [N, m] whose true differences are `truth` [m]."""
    missed = ~found.covered(truth)
    wrong = found.crossed & (np.sign(found.mean) != np.sign(truth))
    large = np.abs(truth) > 0.999 * MARGIN
    small = (found.equivalent | (found.crossed & found.small)) & large
    return {
        "experiments": float(len(found.crossed)),
        "claims": float(found.crossed.any(axis=1).sum()),
        "silent": float((~found.crossed).all(axis=1).sum()),
        "wrong": float(wrong.any(axis=1).sum()),
        **{f"missed {index}": float(count) for index, count in enumerate(missed.sum(axis=0))},
        "missed any": float(missed.any(axis=1).sum()),
        "equivalent": float(found.equivalent.any(axis=1).sum()),
        "falsely equivalent": float((found.equivalent & large).any(axis=1).sum()),
        "false": float((wrong | small).any(axis=1).sum()),
        "missed at once": float((~found.covered_at_once(truth)).sum()),
        "replicates": float(found.replicates.max(axis=1).sum()),
        "futile": float(found.futile.any(axis=1).sum()),
        "stopped": float((found.futile & large).any(axis=1).sum()),
        "found": float((found.crossed & (np.sign(found.mean) == np.sign(truth)) & large).any(axis=1).sum()),
    }


def _naive(task: Task, law: Law) -> Tally:
    rng = task.rng()
    most = max(pairs for _, tried in naive.RULES.values() for pairs in tried)
    curves = laws.curves(law, task.rho, Size(task.experiments, most), rng, laws.TAIL)
    tally: Tally = {}
    for name, (claim, tried) in naive.RULES.items():
        for pairs in tried:
            a, b = curves[:, 0, :pairs], curves[:, 1, :pairs]
            claims = float(claim(a, b, rng).sum())
            key = (task.part, f"{name}, {pairs}", task.law, task.rho, "none")
            tally[key] = {"experiments": float(task.experiments), "claims": claims}
            if claim is naive.last_episode:
                loses = (a[..., -1].mean(axis=1) + OUTCOME_SD) < b[..., -1].mean(axis=1)
                tally[*key[:4], "d=1"] = {"experiments": float(task.experiments), "wrong": float(loses.sum())}
    return tally


def add(total: Tally, part: Tally) -> None:
    """Sum `part` into `total`."""
    for key, counts in part.items():
        mine = total.setdefault(key, dict.fromkeys(counts, 0.0))
        for name, count in counts.items():
            mine[name] += count
