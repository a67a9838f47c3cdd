"""From a rollout to the sequences that an update goes through: cut where a memory is emptied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Ints

Arrays = dict[str, NDArray[Any]]


def of_steps(arrays: Arrays, valid: Bools) -> Arrays:
    """Return every valid step as a sequence of its own, [1, N, …] from [T, E, …]: where there is no memory."""
    return {name: array[valid][None] for name, array in arrays.items()}


def cut(arrays: Arrays, starts: Bools) -> tuple[Arrays, Ints, Bools]:
    """Cut columns [T, E, …] before each step in `starts` [T, E]; sequences [L, N, …], shorter ones padded with zeros.

    Returns also the column each sequence is of, [N], and whether it is that column's first, [N].
    """
    steps, columns = starts.shape
    begins = [np.concatenate(([0], np.flatnonzero(starts[1:, column]) + 1)) for column in range(columns)]
    of_column = np.repeat(np.arange(columns), [len(of) for of in begins])
    begin = np.concatenate(begins)
    length = np.concatenate([np.diff(of, append=steps) for of in begins])
    within = np.arange(length.max())[:, None] < length  # [L, N]
    at = np.where(within, begin + np.arange(length.max())[:, None], 0)
    found = {}
    for name, array in arrays.items():
        found[name] = np.where(within.reshape(*within.shape, *[1] * (array.ndim - 2)), array[at, of_column], 0)
    return {name: array.astype(arrays[name].dtype) for name, array in found.items()}, of_column, begin == 0
