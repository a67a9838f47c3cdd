"""Which combinations of seeds a validation pass measures, and what follows from them. Pure; no torch.

A configuration is a bit code over the S slots: bit s set means slot s acts as it is, clear means its alpha is 0. For
every environment: the real network; every seed off; each seed off; only one on; only two on. All of them go through
one fused pass that widens at each slot: a configuration joins the batch where it first differs from another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Widening:
    """Rows of the pass behind one slot: each continues `parent` (a row before the slot), with its seed on or off."""

    parent: Ints  # [R]
    env: Ints  # [R]
    on: Bools  # [R]
    widens: bool  # False: rows are those before the slot, in the same order


@dataclass(frozen=True)
class Pass:
    """A validation pass: what to do at each slot, and which (env, code) each final row is."""

    slots: tuple[Widening, ...]
    keys: Ints  # [R] env << S | code, ascending
    n_slots: int

    def rows(self, env: Ints, code: Ints) -> Ints:
        """Final rows that measure `code` of `env`; both must be part of the pass."""
        return np.searchsorted(self.keys, (env << self.n_slots) | code)

    def real_rows(self) -> Ints:
        """[n] the final row of every environment's real network."""
        full = (1 << self.n_slots) - 1
        return np.flatnonzero((self.keys & full) == full)


def wanted(active: Bools) -> tuple[Ints, Bools]:
    """Codes [E, K] and whether they apply [E, K], for `active` [E, S]: seeds in the forward pass with alpha > 0."""
    n_envs, n_slots = active.shape
    bits = 1 << np.arange(n_slots, dtype=np.int64)
    full = (1 << n_slots) - 1
    mask = (active * bits).sum(1, dtype=np.int64)  # [E] every active seed
    pairs = [(i, j) for i in range(n_slots) for j in range(i + 1, n_slots)]
    on_sets = [0, *bits.tolist(), *((1 << i) | (1 << j) for i, j in pairs)]  # only these on
    codes = np.empty((n_envs, 1 + n_slots + len(on_sets)), dtype=np.int64)
    valid = np.zeros(codes.shape, dtype=bool)
    codes[:, 0], valid[:, 0] = full, True
    codes[:, 1 : 1 + n_slots] = full & ~bits
    valid[:, 1 : 1 + n_slots] = active
    only = np.array(on_sets, dtype=np.int64)
    codes[:, 1 + n_slots :] = (full & ~mask)[:, None] | only
    valid[:, 1 + n_slots :] = (only & ~mask[:, None]) == 0
    return codes, valid


def plan_pass(active: Bools, ablate: bool) -> Pass:
    """The pass over all environments of `active` [E, S]; without `ablate` only the real networks."""
    n_envs, n_slots = active.shape
    codes, valid = wanted(active)
    if not ablate:
        codes, valid = codes[:, :1], valid[:, :1]
    keys = np.unique(((np.arange(n_envs, dtype=np.int64)[:, None] << n_slots) | codes)[valid])
    code = keys & ((1 << n_slots) - 1)
    env = keys >> n_slots
    before = np.arange(n_envs, dtype=np.int64) << n_slots  # rows so far, identified by env << S | decided bits
    slots = []
    for slot in range(n_slots):
        # Bits of later slots are not decided yet: rows that agree so far are one row.
        seen = np.unique((env << n_slots) | (code & ((2 << slot) - 1)))
        row_env, bits = seen >> n_slots, seen & ((1 << n_slots) - 1)
        ancestors = (row_env << n_slots) | (bits & ((1 << slot) - 1))
        parent = np.searchsorted(before, ancestors)
        slots.append(Widening(parent, row_env, (bits >> slot & 1).astype(bool), len(seen) != len(before)))
        before = seen
    return Pass(tuple(slots), keys, n_slots)


def contributions(active: Bools, accuracy: Floats, pas: Pass) -> tuple[Floats, Floats, Floats]:
    """Leave-one-out contribution [E, S], all-off accuracy [E] and interaction sum [E, S] from a pass with ablations.

    Contribution: accuracy of the real network minus that with the seed off, same samples, points; NaN where no seed is
    active. Interaction of i and j: f({i,j}) − f({i}) − f({j}) + f(∅), summed over partners; f(X): only X on.
    """
    n_envs, n_slots = active.shape
    full = np.int64((1 << n_slots) - 1)
    envs = np.arange(n_envs, dtype=np.int64)
    mask = (active << np.arange(n_slots)).sum(1).astype(np.int64)
    rest = full & ~mask

    def measured(selected: Bools, code: Ints) -> Floats:
        rows = np.where(selected, pas.rows(envs, np.where(selected, code, full)), 0)
        return np.where(selected, accuracy[rows], np.nan)

    everyone = np.ones(n_envs, dtype=bool)
    real, off = measured(everyone, np.broadcast_to(full, n_envs)), measured(everyone, rest)
    without = [np.broadcast_to(full & ~np.int64(1 << slot), n_envs) for slot in range(n_slots)]
    contribution = np.stack([real - measured(active[:, slot], without[slot]) for slot in range(n_slots)], 1)
    interaction = np.zeros((n_envs, n_slots))
    for i in range(n_slots):
        for j in range(i + 1, n_slots):
            both = active[:, i] & active[:, j]
            pair = measured(both, rest | (1 << i) | (1 << j))
            index = pair - measured(both, rest | (1 << i)) - measured(both, rest | (1 << j)) + off
            interaction[:, i] += np.where(both, index, 0.0)
            interaction[:, j] += np.where(both, index, 0.0)
    return contribution, off, interaction
