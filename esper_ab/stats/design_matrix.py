"""The least-squares design of paired differences with position effects, and whether it identifies tau."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esper_ab.stats.floats import Floats


def design_matrix(sides: Sequence[tuple[int, int]], positions: int) -> Floats:
    """Return the design matrix, [pairs, positions].

    Its first column, for tau, is 1. Each further column, for a position except the first, is +1 if a has that position
    and -1 if b has it.
    """
    matrix = np.zeros((len(sides), positions))
    matrix[:, 0] = 1.0
    for row, (a, b) in enumerate(sides):
        if positions > 1 and a:
            matrix[row, a] += 1.0
        if positions > 1 and b:
            matrix[row, b] -= 1.0
    return matrix


def estimable(matrix: Floats) -> bool:
    """True if tau is identifiable: the first column of `matrix` [pairs, q] is not a linear combination of the rest."""
    pairs, columns = matrix.shape
    if pairs == 0:
        return False
    others = 0
    if columns > 1:
        others = int(np.linalg.matrix_rank(matrix[:, 1:]))
    return int(np.linalg.matrix_rank(matrix)) > others
