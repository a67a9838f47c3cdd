"""Levels for a stream of tests of unknown length, of whose discoveries at most a share alpha is false on average.

The test with number j = 1, 2, ... has the level alpha * weight(j) * (discoveries before it + 1); the weights sum to 1.
LOND (Javanmard & Montanari 2018) is this rule for p-values, e-LOND (Xu & Ramdas 2024) for e-values: a discovery at
level a is one of an e-value 1/a, and 0 otherwise.

Why it holds: if test j makes a discovery, there are at least (discoveries before it + 1) of them in the end. So a false
discovery adds at most 1 / (discoveries before it + 1) to the false share, and does so with a chance of at most the
level. The false share is at most the sum of alpha * weight(j) on average, whatever the tests depend on, as long as each
errs with a chance of at most its level given everything before it. New random seeds for every test give that.
"""

from __future__ import annotations

SPREAD = 50  # the first this many tests or so have similar weights (docs/evidence/streams.md)


def weight(number: int) -> float:
    """Return the share of alpha of the test with this `number`, from 1 on."""
    return (SPREAD + 1.0) / ((number + SPREAD) * (number + SPREAD + 1.0))


def spent(tests: int) -> float:
    """Return the sum of the weights of the first `tests` tests."""
    return tests / (tests + SPREAD + 1.0)


def level(alpha: float, number: int, discoveries: int) -> float:
    """Return the level of the test with this `number`, after so many `discoveries`."""
    return alpha * weight(number) * (discoveries + 1)
