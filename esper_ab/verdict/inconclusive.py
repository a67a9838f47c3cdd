"""The kinds of INCONCLUSIVE. A separate module, because evidence, sentences and reports all import it."""

from __future__ import annotations

from enum import StrEnum


class Inconclusive(StrEnum):
    """What an INCONCLUSIVE at the end of a plan or of a comparison means; `verdict.json` holds the value."""

    BOUNDED = "bounded"  # the margin was within reach, and the interval says what is ruled out
    UNINFORMATIVE = "uninformative"  # the margin was out of reach
    FUTILE = "futile"  # a look stopped the comparison, because a difference of the margin had become unlikely
