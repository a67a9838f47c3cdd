"""Chooses which combinations of seeds a validation pass measures, and derives contributions. Pure; no torch.

A configuration is a bit code over the S slots: if bit s is set, slot s acts as it is; otherwise the slot's alpha is 0.
For every environment the pass measures the real network, and the network with all seeds off, with only one seed off,
with only one seed on, and with only two seeds on. All configurations run in one fused pass that widens at each slot: a
configuration joins the batch where it first differs from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from workers.kinds.growth.facts import Bools, Floats, Ints


@dataclass(frozen=True)
class Widening:
    """Rows of the pass behind one slot.

    Each row continues the row `parent` before the slot, with the slot's seed on or off.
    """

    parent: Ints  # [R]
    env: Ints  # [R]
    on: Bools  # [R]
    widens: bool  # False: the rows are unchanged by this slot


@dataclass(frozen=True)
class Pass:
    """A validation pass: the widening at each slot, and the (env, code) of each final row."""

    slots: tuple[Widening, ...]
    keys: Ints  # [R] env << S | code, ascending
    n_slots: int

    def real_rows(self) -> Ints:
        """Return [n], the final row of every environment's real network."""
        all_slots = (1 << self.n_slots) - 1
        return np.flatnonzero((self.keys & all_slots) == all_slots)


def wanted(active: Bools) -> tuple[Ints, Bools]:
    """Return the configuration codes, [E, K], and a mask of the codes that apply, [E, K].

    `active` [E, S]: seeds in the forward pass with alpha > 0.
    """
    n_envs, n_slots = active.shape
    bits = 1 << np.arange(n_slots, dtype=np.int64)
    all_slots = (1 << n_slots) - 1
    mask = (active * bits).sum(1, dtype=np.int64)  # [E] every active seed
    pairs = [(1 << i) | (1 << j) for i, j in combinations(range(n_slots), 2)]
    slot_sets = [0, *bits.tolist(), *pairs]  # only these on
    codes = np.empty((n_envs, 1 + n_slots + len(slot_sets)), dtype=np.int64)
    valid_mask = np.zeros(codes.shape, dtype=bool)
    codes[:, 0] = all_slots
    valid_mask[:, 0] = True
    codes[:, 1 : 1 + n_slots] = all_slots & ~bits
    valid_mask[:, 1 : 1 + n_slots] = active
    set_codes = np.array(slot_sets, dtype=np.int64)
    codes[:, 1 + n_slots :] = (all_slots & ~mask)[:, None] | set_codes
    valid_mask[:, 1 + n_slots :] = (set_codes & ~mask[:, None]) == 0
    return codes, valid_mask


def plan_pass(active: Bools, ablate: bool) -> Pass:
    """Return the pass over all environments of `active` [E, S]; without `ablate`, the pass has only the real networks.

    The pass's arrays are shared between calls and must not be changed.
    """
    return _plan(active.tobytes(), active.shape[0], active.shape[1], ablate)


@lru_cache(maxsize=64)  # consecutive epochs mostly have the same seeds on
def _plan(activity: bytes, n_envs: int, n_slots: int, ablate: bool) -> Pass:
    active = np.frombuffer(activity, dtype=np.bool_).reshape(n_envs, n_slots)
    codes, valid_mask = wanted(active)
    if not ablate:
        codes = codes[:, :1]
        valid_mask = valid_mask[:, :1]
    all_slots = (1 << n_slots) - 1
    keys_before = np.arange(n_envs, dtype=np.int64) << n_slots  # rows so far, identified by env << S | decided bits
    keys = np.unique((keys_before[:, None] | codes)[valid_mask])
    code = keys & all_slots
    env = keys >> n_slots
    slots = []
    for slot in range(n_slots):
        # Bits of later slots are not decided yet: rows that agree so far are one row.
        decided_before = (1 << slot) - 1
        decided_bits = (2 << slot) - 1
        new_keys = np.unique((env << n_slots) | (code & decided_bits))
        row_env = new_keys >> n_slots
        bits = new_keys & all_slots
        ancestors = (row_env << n_slots) | (bits & decided_before)
        parent = np.searchsorted(keys_before, ancestors)
        on_mask = (bits >> slot & 1).astype(bool)
        slots.append(Widening(parent, row_env, on_mask, widens=len(new_keys) != len(keys_before)))
        keys_before = new_keys
    return Pass(tuple(slots), keys, n_slots)


def contributions(active: Bools, accuracy: Floats, pas: Pass) -> tuple[Floats, Floats, Floats]:
    """Return contributions [E, S], all-off accuracy [E] and interaction sums [E, S] from a pass with ablations.

    A contribution (leave-one-out) is the accuracy of the real network minus its accuracy with the seed off, on the same
    samples, in points; it is NaN where no seed is active. The interaction of i and j is f({i,j}) − f({i}) − f({j}) +
    f(∅), where f(X) is the accuracy with only X on; a seed's interaction sum adds up its interactions with all other
    seeds.
    """
    n_envs, n_slots = active.shape
    all_slots = (1 << n_slots) - 1
    bits = 1 << np.arange(n_slots, dtype=np.int64)
    envs = np.arange(n_envs, dtype=np.int64)
    inactive_code = all_slots & ~(active * bits).sum(1, dtype=np.int64)  # [E] slots that are not on
    accuracy_by_key = np.full(n_envs << n_slots, np.nan)  # indexed by key: env << S | code
    accuracy_by_key[pas.keys] = accuracy
    accuracy_by_code = accuracy_by_key.reshape(n_envs, 1 << n_slots)  # NaN where not measured
    accuracy_off = accuracy_by_code[envs, inactive_code]
    contribution = accuracy_by_code[:, all_slots, None] - accuracy_by_code[:, all_slots & ~bits]
    interaction = np.zeros((n_envs, n_slots))
    if (active.sum(1) > 1).any():
        accuracy_alone = accuracy_by_code[envs[:, None], inactive_code[:, None] | bits]  # [E, S]
        for i, j in combinations(range(n_slots), 2):
            pair_mask = active[:, i] & active[:, j]
            index = (
                accuracy_by_code[envs, inactive_code | (1 << i) | (1 << j)]
                - accuracy_alone[:, i]
                - accuracy_alone[:, j]
                + accuracy_off
            )
            interaction[:, i] += np.where(pair_mask, index, 0.0)
            interaction[:, j] += np.where(pair_mask, index, 0.0)
    return contribution, accuracy_off, interaction
