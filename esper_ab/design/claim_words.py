"""What a plan of each claim is said to find, for the texts on its power. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.contracts.claim import Claim


@dataclass(frozen=True, kw_only=True)
class ClaimWords:
    """Phrases on power; the power of the claim `not-worse` is that of groups that do not differ."""

    to_find: str  # "To find a difference of 2 points"; followed by " with 80 % power"
    size: str  # "a difference": what has a size that a plan can find
    finds: str  # "find": what seeds do, as in "20 seeds find a difference of 2.1"
    smallest: str  # heading of a table


def claim_words(claim: Claim, margin: str) -> ClaimWords:
    """Return the phrases for a claim; `margin` is the margin with its unit."""
    if claim == "difference":
        return ClaimWords(
            to_find=f"To find a difference of {margin} with 80 % power",
            size="difference",
            finds="find",
            smallest="Smallest difference{unit} found",
        )
    return ClaimWords(
        to_find=f"To show with 80 % power that a group is not worse by {margin} or more, if the groups do not differ",
        size="margin",
        finds="show that a group is not worse, if the groups do not differ, at",
        smallest="Smallest margin{unit} at which a group that does not differ is shown to be not worse",
    )
