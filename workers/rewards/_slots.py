"""Two views of the facts that every per-slot term needs. Knows no formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workers.rewards._facts import Bools, Floats, Ints, SeedFacts, StepFacts
from workers.vocabulary import Op, Stage


def blank_absent(seeds: SeedFacts) -> SeedFacts:
    """The same facts [E, S] with empty slots made neutral: stage UNKNOWN, counts 0, measurements NaN.

    What a caller left in the entries of an empty slot can then neither reach a reward nor raise a numpy warning.
    `potential_before` stays: it is owed by slots that just lost their seed.
    """

    def counts(values: Ints) -> Ints:
        return np.where(seeds.present, values, 0)

    def measured(values: Floats) -> Floats:
        return np.where(seeds.present, values, np.nan)

    return replace(
        seeds,
        stage=np.where(seeds.present, seeds.stage, Stage.UNKNOWN),
        previous_stage=np.where(seeds.present, seeds.previous_stage, Stage.UNKNOWN),
        epochs_in_stage=counts(seeds.epochs_in_stage),
        age=counts(seeds.age),
        contribution=measured(seeds.contribution),
        total_improvement=measured(seeds.total_improvement),
        interaction_sum=measured(seeds.interaction_sum),
        acc_at_germination=measured(seeds.acc_at_germination),
    )


def acted_on(facts: StepFacts, op: Op) -> Bools:
    """[E, S]: True in the one slot on which this environment's decision is `op`, False everywhere else."""
    slots = np.arange(facts.seeds.present.shape[1])
    mask: Bools = (facts.op == op)[:, None] & (facts.slot[:, None] == slots)
    return mask
