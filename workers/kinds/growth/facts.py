"""Inputs of a reward: the facts measured before decision t, for all environments at once. A reward sees nothing else.

E environments, S enabled slots in network order. Accuracies are in percent, losses in nats, contributions in points.
NaN, never zero, means "not measured". Facts are read-only, because all reward modes of a step, the records and the next
observation share their arrays: a reward that writes to an array gets numpy's ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass

from workers.arrays import Bools as Bools
from workers.arrays import Floats as Floats
from workers.arrays import Ints as Ints
from workers.arrays import ReadOnlyArrays


@dataclass(frozen=True, kw_only=True)
class SeedFacts(ReadOnlyArrays):
    """Facts per environment and slot, [E, S]. Where `present` is False, only `potential_before` is meaningful."""

    present: Bools  # a live module (GERMINATED … FOSSILIZED)
    stage: Ints
    previous_stage: Ints
    epochs_in_stage: Ints
    age: Ints  # validations since germination
    contribution: Floats  # leave-one-out, NaN when not measured this step
    total_improvement: Floats  # accuracy minus all-off accuracy
    interaction_sum: Floats
    acc_at_germination: Floats  # NaN when unknown
    # `potential` of this slot at the previous decision; 0 if it had no seed then. Used even where `present`
    # is False: a seed removed since then still repays it ("How the potential telescopes", docs/internals/rewards.md).
    potential_before: Floats


@dataclass(frozen=True, kw_only=True)
class StepFacts(ReadOnlyArrays):
    """All inputs of a reward: the facts before decision t, and decision t itself."""

    op: Ints  # [E] the sampled op; always valid
    slot: Ints  # [E] the slot acted on; -1 for WAIT
    seeds: SeedFacts
    step: int  # t, 1-based
    steps: int  # T
    val_acc: Floats  # [E]
    best_val_acc: Floats  # [E] running maximum in the episode
    acc_delta: Floats  # [E] NaN at t = 1
    val_loss: Floats  # [E]
    loss_delta: Floats  # [E] previous minus current: positive is improvement; NaN at t = 1
    host_params: Ints  # [E]
    total_params: Ints  # [E] host and every module and gate present
    effective_seed_params: Floats  # [E] rent input, in parameters (docs/internals/rewards.md)
    alpha_delta_sq_sum: Floats  # [E] shock input
    fossilized: Ints  # [E] seeds fossilised so far
    contributing: Ints  # [E] fossilised with a contribution of at least 1 point
