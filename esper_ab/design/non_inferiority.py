"""The looks and one-sided bounds of a plan that asks whether a group is not worse by the margin or more. Pure.

The claim needs LEAST_EQUIVALENCE_PAIRS pairs, like EQUIVALENT, because few runs seldom show a rare collapse. No default
look comes before EARLIEST_LOOK seeds: where a group is worse only because of rare collapses, an earlier one would make
the false claim more often than a plan of 20 seeds (docs/evidence/rates.md). Alpha is spent one-sided, by the function
that also spends it on differences.
"""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.claim import Claim
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.settings import Fraction, Settings
from esper_ab.design.bounds import find_bounds
from esper_ab.design.counterbalance import Sides
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS

EARLIEST_LOOK = 20  # seeds at the first default look
SEVERAL_LOOKS_FROM = 24  # seeds; below, one look at the end
_CLAIM: Claim = "not-worse"


class NonInferiority(Settings, frozen=True, kw_only=True):
    """The bounds on the one-sided p at the margin, at the share of alpha that each comparison holds first."""

    nominal_p: tuple[Fraction, ...]  # per look; 0.0 at a look that cannot test; empty in a plan without a maximum


def non_inferiority_of(
    alpha: float, comparisons: int, sides: Sides, positions: int, looks: tuple[int, ...], prior_df: int = 0
) -> NonInferiority:
    """Return the bounds for `comparisons` that share `alpha`.

    A two-sided test at twice alpha rejects on one side with probability alpha, so its bounds are halved. (Both sides
    reject at different looks with a probability below 1e-6.) `prior_df`: of moderated variances.
    """
    (bounds,) = find_bounds(sides, positions, looks, (2.0 * alpha / comparisons,), prior_df=prior_df)
    return NonInferiority(nominal_p=tuple(bound / 2.0 for bound in bounds))


def check_claim(
    claim: Claim,
    *,
    groups: Sequence[str],
    control: str,
    seeds: int | None,
    looks: tuple[int, ...],
    futility: float,
) -> None:
    """Raise UsageError if a plan with these settings could not show the claim `claim`.

    `groups` are those that are compared, `looks` those that were named, and `seeds` is None in a plan without maximum.
    """
    if claim != _CLAIM:
        return
    claim_setting = SettingName("claim", claim)
    if not control and len(groups) > 2:
        raise UsageError(
            claim_setting,
            " asks whether each group is not worse than one other; name that one with ",
            SettingName("control"),
            ", or compare two groups",
        )
    if futility:
        raise UsageError(
            claim_setting,
            " ends a comparison as soon as the claim holds, so stops for futility have no use; leave out ",
            SettingName("futility", futility),
        )
    if seeds is not None and seeds < LEAST_EQUIVALENCE_PAIRS:
        raise UsageError(
            claim_setting,
            f" needs at least {LEAST_EQUIVALENCE_PAIRS} seeds, because fewer runs seldom show a rare collapse; use ",
            SettingName("seeds", EARLIEST_LOOK),
        )
    if looks and looks[0] < LEAST_EQUIVALENCE_PAIRS:
        raise UsageError(
            SettingName("looks", looks[0]),
            ": with ",
            claim_setting,
            f" the first look needs at least {LEAST_EQUIVALENCE_PAIRS} seeds",
        )
