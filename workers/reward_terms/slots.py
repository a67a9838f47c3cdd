"""Helpers of the per-slot terms: blanked facts, the slot acted on, a choice between values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.facts import Bools, Floats, Ints, SeedFacts, StepFacts
from workers.vocabulary import UNKNOWN, Op

Values = NDArray[np.floating[Any]] | float


def blank_absent(seeds: SeedFacts) -> SeedFacts:
    """Return the facts [E, S] with empty slots made neutral: stage UNKNOWN, counts 0, measurements NaN.

    Leftover entries of an empty slot can then neither affect a reward nor raise a numpy warning. `potential_before` is
    kept, because slots that just lost their seed repay it.
    """

    def counts(values: Ints, blank: int = 0) -> Ints:
        return np.where(seeds.present, values, blank)

    def measured(values: Floats) -> Floats:
        return np.where(seeds.present, values, np.nan)

    return SeedFacts(
        present=seeds.present, potential_before=seeds.potential_before, stage=counts(seeds.stage, UNKNOWN),
        previous_stage=counts(seeds.previous_stage, UNKNOWN), epochs_in_stage=counts(seeds.epochs_in_stage),
        age=counts(seeds.age), contribution=measured(seeds.contribution),
        total_improvement=measured(seeds.total_improvement), interaction_sum=measured(seeds.interaction_sum),
        acc_at_germination=measured(seeds.acc_at_germination),
    )


def acted_on(facts: StepFacts, op: Op) -> Bools:
    """Return [E, S]: True in the one slot on which this environment's decision is `op`, False everywhere else."""
    slots = np.arange(facts.seeds.present.shape[1])
    mask: Bools = (facts.op == int(op))[:, None] & (facts.slot[:, None] == slots)
    return mask


def first_of(*cases: tuple[Bools, Values], otherwise: Values) -> Floats:
    """Return elementwise the value of the first true condition; like np.select at a tenth of its cost here."""
    chosen: Floats = np.asarray(otherwise, dtype=np.float64)
    for condition, value in reversed(cases):
        chosen = np.where(condition, value, chosen)
    return chosen
