"""One look at one guardrail of a comparison: whether the first group's measure is not worse by the margin. Pure.

A margin in percent is a share of the other group's mean: the test is then one of a - b (1 + share), or of a - b (1 -
share) if higher is better, which needs no estimate of that mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
import numpy as np

from esper_ab.contracts.measures import SMALLEST_MARGIN, TaskMeasures
from esper_ab.design.design import Design
from esper_ab.design.guardrails import Guardrail
from esper_ab.design.non_inferiority import NonInferiority
from esper_ab.stats.floats import exact_sum
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.pair import Data, Samples, before, outcomes
from esper_ab.stats.rounding import alike
from esper_ab.verdict.look import Look, look_at_claim
from esper_ab.verdict.not_worse import NotWorse
from esper_ab.verdict.question import Lost

_STEPS = 60  # of the bisection for a limit in percent
_LARGEST_SHARE = 1e3  # beyond which no limit in percent is given


@dataclass(frozen=True, kw_only=True)
class GuardedRuns:
    """The measure of one guardrail in the runs of a comparison."""

    data: Data
    # The replicates in which a run has no value, because it was lost or the measure is no number.
    lost: Lost = field(default_factory=Lost)


class GuardrailLook(msgspec.Struct, frozen=True, kw_only=True):
    """The test of one guardrail at one look; sizes are in the unit of differences, or shares if it is relative."""

    pairs: int
    mean_a: float | None  # means of the measure
    mean_b: float | None
    worse: float | None  # how much worse the first group is; below 0, it is better
    worse_at_most: float | None  # the one-sided limit; None: there is none
    p: float | None  # one-sided, at the margin; None without a t
    bound_p: float | None  # required of it; None under the anytime-valid rule
    lost: int  # runs of the first group without a value: they were lost, or the measure is no number
    lost_b: int  # runs of the other group that were not lost, but whose measure is no number
    left_out: int  # replicates that are left out because the measure of a run that was not lost is no number
    holds: bool


def guardrail_look(
    design: Design, guardrail: Guardrail, replicates: int, guarded_runs: GuardedRuns, losses: Lost
) -> GuardrailLook:
    """Test a guardrail at the first `replicates` replicates, at the first share of alpha.

    A guardrail does not hold if a run of the first group was lost, unless it is about lost runs, or if the measure of a
    run of either group is no number: nothing says that the pairs that are left are like those that are not. Pairs that
    all differ by the same amount have no test: that amount is then the limit. `losses`: the lost runs of the outcome.
    """
    data = guarded_runs.data
    used_data = before(data, replicates)
    mean_a, mean_b = _means(used_data)
    no_values = _count_without_value(guardrail, guarded_runs.lost.before(replicates), losses.before(replicates))
    worse = _worse(guardrail, mean_a, mean_b)
    empty_look = GuardrailLook(
        pairs=len(used_data),
        mean_a=mean_a,
        mean_b=mean_b,
        worse=worse,
        worse_at_most=None,
        p=None,
        bound_p=None,
        lost=no_values.a,
        lost_b=no_values.b,
        left_out=no_values.left_out,
        holds=False,
    )
    if worse is None:  # no run is known, or no share of such a mean has a meaning
        return empty_look
    own_design = _own_design(design, guardrail)
    not_worse = look_at_claim(own_design, replicates, _scaled(data, guardrail, guardrail.margin))
    limit = _limit(own_design, guardrail, replicates, data, not_worse)
    holds = not_worse.shown
    if limit is None and _is_constant(used_data):
        limit = worse
        holds = len(used_data) >= LEAST_EQUIVALENCE_PAIRS and worse < guardrail.margin
    return msgspec.structs.replace(
        empty_look,
        worse_at_most=limit,
        p=not_worse.p,
        bound_p=not_worse.bound_p,
        holds=holds and not no_values.a and not no_values.b,
    )


def equal_look(guardrail: Guardrail, guarded_runs: GuardedRuns, losses: Lost) -> GuardrailLook:
    """Look at a recorded measure after IDENTICAL: it needs no test where it is equal in every pair.

    Where it is no number, it is none in both runs, because their records are equal.
    """
    data = guarded_runs.data
    a, b = outcomes(data)
    mean_a, mean_b = _means(data)
    is_equal = len(data) >= LEAST_PAIRS and np.array_equal(a, b)
    return GuardrailLook(
        pairs=len(data),
        mean_a=mean_a,
        mean_b=mean_b,
        worse=0.0 if is_equal else _worse(guardrail, mean_a, mean_b),
        worse_at_most=0.0 if is_equal else None,
        p=None,
        bound_p=None,
        lost=losses.a,
        lost_b=0,
        left_out=_count_without_value(guardrail, guarded_runs.lost, losses).left_out,
        holds=is_equal and not losses.a,
    )


class _WithoutValue(NamedTuple):
    """Numbers of runs without a value, and of the replicates that are left out for one; see `GuardrailLook`."""

    a: int
    b: int
    left_out: int


def _count_without_value(guardrail: Guardrail, without_value: Lost, losses: Lost) -> _WithoutValue:
    """Count the runs without a value: `without_value` of the measure, `losses` of the outcome."""
    if guardrail.source == "crashes":  # known of every run
        return _WithoutValue(0, 0, 0)
    lost_a, lost_b = _replicates(losses)
    without_a, without_b = _replicates(without_value)
    no_number_b = without_b - lost_b
    return _WithoutValue(len(without_a | lost_a), len(no_number_b), len((without_a - lost_a) | no_number_b))


def _replicates(losses: Lost) -> tuple[set[int], set[int]]:
    """Return the replicates of the runs of each group that count as lost."""
    replicates_a = {lost_pair.replicate for lost_pair in losses.replicates if lost_pair.failed_a}
    replicates_b = {lost_pair.replicate for lost_pair in losses.replicates if lost_pair.failed_b}
    return replicates_a, replicates_b


def _own_design(design: Design, guardrail: Guardrail) -> Design:
    """Return the design that tests the measure of a guardrail in place of the outcome."""
    assert design.guards is not None
    return msgspec.structs.replace(
        design,
        margin=SMALLEST_MARGIN if guardrail.relative else guardrail.margin,
        measures=TaskMeasures(outcome=guardrail.measure),
        not_worse=NonInferiority(nominal_p=design.guards.nominal_p),
        futility=None,
    )


def _scaled(data: Data, guardrail: Guardrail, share: float) -> Data:
    """Return the data with b made worse by `share`, if the guardrail is relative."""
    if not guardrail.relative:
        return data
    return replace(data, b=data.b * (1.0 - guardrail.measure.sign * share))


def _limit(own_design: Design, guardrail: Guardrail, replicates: int, data: Data, not_worse: NotWorse) -> float | None:
    """Return by how much the first group may be worse: in percent, the share whose test just rejects."""
    sign = guardrail.measure.sign
    limit = not_worse.worse_limit(sign)
    if limit is None or not guardrail.relative:
        return None if limit is None else -limit

    def excludes(share: float) -> bool:
        own_limit = look_at_claim(own_design, replicates, _scaled(data, guardrail, share)).worse_limit(sign)
        return own_limit is not None and own_limit > 0.0

    low = -1.0
    high = _LARGEST_SHARE if sign < 0.0 else 1.0
    if not excludes(high):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if excludes(middle):
            high = middle
        else:
            low = middle
    return high


def _is_constant(data: Data) -> bool:
    """True if all pairs differ by the same amount."""
    return not isinstance(data, Samples) and len(data) > 0 and alike(*outcomes(data)) == len(data)


def _means(data: Data) -> tuple[float | None, float | None]:
    a, b = outcomes(data)
    mean_a = exact_sum(a) / a.size if a.size else None
    mean_b = exact_sum(b) / b.size if b.size else None
    return mean_a, mean_b


def _worse(guardrail: Guardrail, mean_a: float | None, mean_b: float | None) -> float | None:
    """Return how much worse the mean of a is, as a share of that of b if the guardrail is relative."""
    if mean_a is None or mean_b is None:
        return None
    worse = -guardrail.measure.sign * (mean_a - mean_b)
    if not guardrail.relative:
        return worse
    return worse / mean_b if mean_b > 0.0 else None


def claims_for_a(look: Look, sign: float) -> bool:
    """True if a look claims that a is better or, in a plan that asks for it, not worse."""
    is_better = look.crossed and look.mean is not None and look.mean * sign > 0.0
    return is_better or look.shows_not_worse
