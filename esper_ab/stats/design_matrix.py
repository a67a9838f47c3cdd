"""The least-squares design of paired differences with position effects, and whether it identifies tau."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats


def design_matrix(sides: ArrayLike, positions: int) -> Floats:
    """Return the design matrix, [pairs, positions]. `sides`: the positions of a and b [pairs, 2].

    Its first column, for tau, is 1. Each further column, for a position except the first, is +1 if a has that position
    and -1 if b has it.
    """
    pair_sides = np.asarray(sides, dtype=np.int64).reshape(-1, 2)
    matrix = np.zeros((len(pair_sides), positions))
    if positions > 1:
        rows = np.arange(len(pair_sides))
        matrix[rows, pair_sides[:, 0]] += 1.0
        matrix[rows, pair_sides[:, 1]] -= 1.0
    matrix[:, 0] = 1.0
    return matrix


def estimable(matrix: Floats) -> bool:
    """True if tau is identifiable: the first column of `matrix` [pairs, q] is not a linear combination of the rest."""
    pairs, columns = matrix.shape
    if pairs == 0:
        return False
    other_rank = 0
    if columns > 1:
        other_rank = rank(matrix[:, 1:])
    return rank(matrix) > other_rank


def rank(matrix: Floats) -> int:
    """Return the rank of `matrix` [pairs, q]; a single column needs no decomposition."""
    if matrix.shape[1] == 1:
        return int(matrix.any())
    return int(np.linalg.matrix_rank(matrix))
