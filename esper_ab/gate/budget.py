"""How many seeds, and which looks, a budget of time pays for. Pure.

Simulated for the claims of a gate with 16 to 100 pairs (scripts/gate_rates): beside one look at the end, looks after 20
pairs (14 for a difference) and then after a quarter more each time cost at most 3 points of power, and save up to half
of the pairs where the change is harmless or harmful by far. Where one look has 80 % power, a look after every pair
without a maximum has at most 45 % in as many pairs, so a gate has a maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from esper_ab.contracts.claim import Claim
from esper_ab.design import design, non_inferiority
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS

MOST_SEEDS = 200  # of a gate; whoever needs more asks a question that `launch` is for
# The same while the spread of pairs is unknown: the more seeds a plan has, the later its looks decide, and with a look
# after a tenth of them even a difference of three SDs would stay open there.
MOST_AT_FIRST = 60
REPORT_S = 5.0  # for judging, and for ending workers
_SHARE = 0.85  # of the time left that a plan may need as estimated, because estimates are rough
_STEP = 1.25  # between looks
_LAST_GAP = 0.9  # share of the seeds after which no interim look comes


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a plan costs, in seconds of wall-clock time."""

    start_s: float  # until the first runs train
    wave_s: float  # of pairs that train at the same time
    at_once: int  # pairs that do
    kept_runs: tuple[int, ...] = ()  # by group, finished runs of the first seeds, which cost nothing

    def seconds(self, pairs: int) -> float:
        """Return how long this number of pairs takes."""
        saved_waves = sum(min(runs, pairs) for runs in self.kept_runs) / (2.0 * self.at_once)
        return self.start_s + self.wave_s * max(0.0, math.ceil(pairs / self.at_once) - saved_waves)


def affordable(cost: Cost, left_s: float) -> int:
    """Return how many pairs can be trained and judged in `left_s` seconds, at most MOST_SEEDS."""
    usable_s = _SHARE * (left_s - REPORT_S)
    pairs = 0
    while pairs < MOST_SEEDS and cost.seconds(pairs + 1) <= usable_s:
        pairs += 1
    return pairs


def minutes_for(cost: Cost, pairs: int, spent_s: float) -> int:
    """Return the whole minutes that pay for this number of pairs, of which `spent_s` seconds are spent already."""
    return math.ceil((spent_s + REPORT_S + cost.seconds(pairs) / _SHARE) / 60.0)


def least_pairs(claim: Claim, *, guarded: bool) -> int:
    """Return the pairs without which a gate can show nothing; guardrails are claims that nothing is worse."""
    return LEAST_EQUIVALENCE_PAIRS if claim == "not-worse" or guarded else LEAST_PAIRS


def first_look(claim: Claim, *, guarded: bool) -> int:
    """Return the seeds at the first look, which is that of a default plan: earlier ones see too few rare failures."""
    return non_inferiority.EARLIEST_LOOK if claim == "not-worse" or guarded else design.EARLIEST_LOOK


def looks(seeds: int, claim: Claim, *, guarded: bool) -> tuple[int, ...]:
    """Return the numbers of seeds at the looks of a gate."""
    look = first_look(claim, guarded=guarded)
    numbers = []
    while look <= _LAST_GAP * seeds:
        numbers.append(look)
        look = 2 * round(look * _STEP / 2.0)
    return (*numbers, seeds)
