"""The rules that are tried: designs by the package's own planner, and how many replicates are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from esper_ab.contracts.settings import GroupSettings
from esper_ab.design.boundary_cache import find_bounds
from esper_ab.design.design import Design, extended, make_design
from esper_ab.settings.experiment import Group, ResolvedExperiment
from simulation import laws
from simulation.laws import Array
from workers.growth.measures import MEASURES

HORIZON = 40  # replicates to which open-ended and extended plans are followed
MARGIN = 2.0  # points
NAMES = tuple("abcdefghijkl")


@dataclass(frozen=True)
class Rule:
    """A plan: `replicates` declared (0: no maximum), and whether it is extended afterwards."""

    name: str
    replicates: int
    extend: bool = False
    groups: int = 2
    control: bool = False  # the last group is the control; else all pairs
    looks: tuple[int, ...] = ()  # (): the default ones
    futility: float = 0.0  # power that stops for futility keep at the margin; 0.0: none stops
    positions_matter: bool = True  # False: nothing is adjusted for

    @property
    def horizon(self) -> int:
        """Replicates simulated."""
        return HORIZON if self.extend or not self.replicates else self.replicates


PAIR_RULES = (
    Rule("6 pairs", 6),
    Rule("10 pairs", 10),
    Rule("20 pairs", 20),
    Rule("anytime, to 40", 0),
    Rule("10 pairs, extended to 40", 10, extend=True),
    Rule("20 pairs, extended to 40", 20, extend=True),
)
KEPT = 0.8
STOP_RULES = (  # each as it is, and with stops for futility
    Rule("20 pairs", 20),
    Rule("all pairs of 3, 20 seeds", 20, groups=3),
)
FUTILE_RULES = {rule.name: replace(rule, name=f"{rule.name}, stops for futility", futility=KEPT) for rule in STOP_RULES}
FREE_RULES = tuple(
    replace(rule, name=f"{rule.name}, positions cannot matter", positions_matter=False) for rule in PAIR_RULES[:3]
)
EVERY_RULE = tuple(
    {
        rule.name: rule
        for rule in (
            *PAIR_RULES, *STOP_RULES, *FUTILE_RULES.values(), *FREE_RULES,
        )
    }.values()
)  # fmt: skip


@lru_cache
def design(rule: Rule) -> Design:
    """What the planner makes of it."""
    names = NAMES[: rule.groups]
    experiment = ResolvedExperiment(
        name="simulated",
        groups=tuple(Group(name=name, settings=GroupSettings()) for name in names),
        slots=("early",),
        devices=("cpu:0",),
        seeds=rule.replicates or 6,
        eval_episodes=1,  # outcomes are drawn whole
        looks=rule.looks,
        margin=MARGIN,
        control=names[-1] if rule.control else "",
        open_ended=not rule.replicates,
        futility=rule.futility,
    )
    orders = [tuple(names[index] for index in order) for order in laws.orders(rule.groups, rule.horizon)]
    found = make_design(
        experiment, orders, find_bounds, measures=MEASURES, positions_matter=rule.positions_matter
    )
    return extended(found, rule.replicates) if rule.extend else found


def members(rule: Rule) -> list[tuple[int, int]]:
    """Groups (a, b) of every comparison, by index."""
    return [(NAMES.index(contrast.a), NAMES.index(contrast.b)) for contrast in design(rule).comparisons]


def sides(rule: Rule) -> list[list[tuple[int, int]]]:
    """[m][R]: positions of a and of b."""
    orders = laws.orders(rule.groups, rule.horizon)
    return [[(order.index(a), order.index(b)) for order in orders] for a, b in members(rule)]


def differences(rule: Rule, outcomes: Array) -> Array:
    """[N, m, R] of outcomes [N, groups, R]."""
    return np.stack([outcomes[:, a] - outcomes[:, b] for a, b in members(rule)], axis=1)


def truths(rule: Rule, effects: Sequence[float]) -> Array:
    """[m]: true differences when the groups differ by `effects`, points."""
    return np.array([effects[a] - effects[b] for a, b in members(rule)])
