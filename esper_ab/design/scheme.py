"""The rule by which one comparison of a plan is tested, for computing its power. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.random import Generator

from esper_ab.contracts.claim import Claim
from esper_ab.design.any_shape import ShapeBound, required_evidence
from esper_ab.design.bounds import find_bounds
from esper_ab.design.counterbalance import cycle, order
from esper_ab.design.design import adjusts, futility_of
from esper_ab.design.t_process import TProcess, t_process
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """The rule by which one comparison is tested."""

    replicates: int
    looks: tuple[int, ...]  # of the plan
    process: TProcess  # at the looks that can test
    # At the looks of `process`; empty with too few replicates, where nothing is decided. For the claim not-worse, they
    # are twice the one-sided bounds: at an effect of the margin, such a two-sided test has the power of the claim where
    # nothing differs.
    nominal_p: tuple[float, ...]
    alpha: float  # share of the comparison at first
    futility_p: tuple[float, ...] = ()  # likewise, one-sided at the margin; empty: no stopping for futility
    difference_p: tuple[float, ...] = ()  # of the claim not-worse: the bounds of BETTER and WORSE; empty: of others


class PowerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The design whose power `power_tables_of` computes."""

    margin: float  # > 0
    alpha: float = 0.05  # of the whole experiment
    groups: int = 2  # per block; also the number of positions
    comparisons: int = 1  # number of comparisons that share alpha at first
    looks: tuple[int, ...] = ()  # used if they end at the number of replicates; other numbers get the default looks
    positions_matter: bool = True  # whether the plan may have to adjust for device and start order
    futility: float = 0.0  # least power at the margin when stopping for futility; 0.0: no such stopping
    not_worse: bool | UnsetType = UNSET  # True: the power of the claim not-worse; left out for others
    prior_df: int | UnsetType = UNSET  # of moderated variances; UNSET: comparisons have their own
    # The largest possible difference, if claims must hold for any shape; unset: they assume that shapes are the same.
    largest: float | UnsetType = UNSET

    @property
    def claim(self) -> Claim:
        """What the plan sets out to show."""
        return "difference" if isinstance(self.not_worse, UnsetType) else "not-worse"

    def shape_bound(self, sd: float) -> ShapeBound | None:
        """Return what claims for any shape need if differences have this SD; None if claims assume the same shape."""
        if isinstance(self.largest, UnsetType):
            return None
        evidence = required_evidence(self.alpha / self.comparisons)
        margin = 0.0 if self.claim == "difference" else self.margin / sd
        return ShapeBound(size=self.largest / sd, evidence=evidence, margin=margin)


def generator_of(question: PowerQuestion, replicates: Sequence[int] = ()) -> Generator:
    """Return a generator seeded by the question without `positions_matter`, `futility`, `not_worse`, `prior_df` and
    `largest`.

    Answers that differ only in these fields thus use the same draws, so they do not differ by simulation error.
    """
    question_fields = msgspec.to_builtins(question)
    del question_fields["positions_matter"]
    del question_fields["futility"]
    question_fields.pop("not_worse", None)
    question_fields.pop("prior_df", None)
    question_fields.pop("largest", None)
    digest = hashlib.sha256(msgspec.json.encode([question_fields, list(replicates)])).digest()
    key = int.from_bytes(digest[:16], "little")
    return np.random.Generator(np.random.Philox(key=key))


def scheme(replicates: int, looks: tuple[int, ...], question: PowerQuestion) -> Scheme:
    """Return the rule of a plan whose blocks are counterbalanced by default; `looks` end at `replicates`."""
    orders = [order(question.groups, block) for block in range(replicates)]
    is_adjusted = question.positions_matter and adjusts(orders[: cycle(question.groups)], looks[0])
    positions = question.groups if is_adjusted else 1
    sides = tuple((groups.index(0), groups.index(1)) for groups in orders)
    prior_df = 0 if isinstance(question.prior_df, UnsetType) else question.prior_df
    process = t_process(sides, positions, looks, prior_df)
    alpha = question.alpha / question.comparisons
    selected_p: tuple[float, ...] = ()
    futility: tuple[float, ...] = ()
    difference_p: tuple[float, ...] = ()
    if question.claim == "not-worse":
        if replicates >= LEAST_EQUIVALENCE_PAIRS:
            alphas = (alpha, 2.0 * alpha)
            difference_bounds, bounds = find_bounds(sides, positions, looks, alphas, prior_df=prior_df)
            difference_p = _select_looks(process, looks, difference_bounds)
            selected_p = _select_looks(process, looks, bounds)
    elif replicates >= LEAST_PAIRS:
        (bounds,) = find_bounds(sides, positions, looks, (alpha,), prior_df=prior_df)
        selected_p = _select_looks(process, looks, bounds)
        if question.futility and len(looks) > 1:
            bounds = futility_of(question.futility, sides, positions, looks, prior_df).nominal_p
            futility = _select_looks(process, looks, bounds)
    return Scheme(
        replicates=replicates,
        looks=looks,
        process=process,
        nominal_p=selected_p,
        futility_p=futility,
        difference_p=difference_p,
        alpha=alpha,
    )


def _select_looks(process: TProcess, looks: Sequence[int], bounds: Sequence[float]) -> tuple[float, ...]:
    """Return the bounds at those `looks` that can test."""
    return tuple(bound for look, bound in zip(looks, bounds, strict=True) if look in process.looks)
