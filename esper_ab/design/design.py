"""The design of an experiment: comparisons, test and interim looks, fixed before the first run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from esper_ab.contracts.claim import Claim
from esper_ab.contracts.measures import Margin, Measure, TaskMeasures
from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.records import LARGEST_NUMBER, Index, Number
from esper_ab.contracts.settings import Fraction, Settings
from esper_ab.design import non_inferiority
from esper_ab.design.bounds import find_bounds
from esper_ab.design.counterbalance import Sides, estimable_orders
from esper_ab.design.guardrails import Guardrails
from esper_ab.design.moderation import ModeratedVariances, moderation_words, prior_df_of
from esper_ab.design.non_inferiority import NonInferiority
from esper_ab.settings.experiment import ErrorRate, ExperimentSettings
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_OPEN_ENDED_PAIRS, LEAST_PAIRS
from esper_ab.stats.text import digits_for, signed

LEAST_RUNS = 4  # fewest runs of a calibration, so that its spread has limits
SEVERAL_LOOKS_FROM = 16  # replicates; below, one look at the end
# Pairs before which no default look is taken. So early, most of the comparisons decided have a small spread only
# because no run has failed yet: with a look after 10 of 20 pairs, rare failures mislead twice as many plans as with 15
# pairs and one look (docs/evidence/rates.md).
EARLIEST_LOOK = 14
_LEAST_DF = 4  # residual degrees of freedom that an adjustment for positions must leave at the first look
EXTENSION_STRICTNESS = 5.0  # evidence needed beyond the declared maximum, as a multiple of 1/alpha: e >= 100 at 5 %
_TESTS = {"welch": "Welch's t", "mcnemar": "exact McNemar test", "z": "pooled z test with exact bounds"}

Evidence = Annotated[float, Meta(ge=1.0, le=LARGEST_NUMBER)]


class Contrast(Settings, frozen=True, kw_only=True, omit_defaults=True):
    """One comparison: a - b."""

    a: str
    b: str
    task: str = ""  # "": the experiment's only task

    @property
    def groups(self) -> tuple[str, str]:
        """The names of the two groups."""
        return self.a, self.b


class Boundary(Settings, frozen=True, kw_only=True):
    """The bounds on p at each look, for one number of open comparisons that share alpha."""

    open: Index  # comparisons not yet decided, including this one
    alpha: Fraction  # share of each: the experiment's alpha / open
    nominal_p: tuple[Fraction, ...]  # two-sided, one per look


class Futility(Settings, frozen=True, kw_only=True):
    """The rule that stops an undecided comparison early if a difference as large as the margin has become unlikely."""

    power: Fraction  # kept at the margin: at most 1 - power of such differences are stopped before the last look
    nominal_p: tuple[Fraction, ...]  # one-sided, at either margin, per look; 0.0 at the last look


class Design(Settings, frozen=True, kw_only=True):
    """The comparisons of an experiment, with their test, looks and bounds."""

    outcome_over: Literal[OutcomeOver, "given"]  # given: by runs done elsewhere
    # welch: for unpaired runs, done elsewhere without a plan; mcnemar and z: for 0/1 outcomes of paired items and of
    # unpaired trials, with exact bounds
    test: Literal["t", "welch", "mcnemar", "z"]
    alpha: ErrorRate  # of the whole experiment
    margin: Margin  # in the unit of differences of the outcome
    measures: TaskMeasures  # declares the outcome and further measures
    comparisons: tuple[Contrast, ...]  # in the order of the report
    positions: Index  # number of positions in a block: device and start order
    adjusted: bool  # whether position effects are estimated and removed; if not, they cancel only by balance
    early_stop: bool  # whether a decided comparison ends; a group without an open comparison leaves later blocks
    looks: tuple[Index, ...]  # complete replicates at the interim looks and the last one; empty in an open-ended plan
    boundaries: tuple[Boundary, ...]  # by `open`, from all comparisons down to one
    anytime_after: Index | None  # replicates after which the anytime-valid rule holds; None: never
    evidence: Evidence  # e-value that the anytime-valid rule requires while one comparison is open
    positions_drawn: bool = False  # whether drawn at random, so that position effects are noise in every comparison
    positions_matter: bool = True  # False: records depend on rng paths only, not on device and start order
    futility: Futility | None = None  # None: no stopping for futility
    worst: Number | None = None  # declared; replaces lost runs of the group that looks better
    # The claim that a group is not worse, if the plan asks for it. Left out of other plans, whose digests so stay.
    not_worse: NonInferiority | UnsetType = UNSET
    guardrails: Guardrails | UnsetType = UNSET  # likewise
    variances: ModeratedVariances | UnsetType = UNSET  # likewise; UNSET: each comparison has its own variance
    # any: every interval also holds whatever the shapes of the groups' distributions; unset: they are taken as alike
    shape: Literal["any"] | UnsetType = UNSET

    @property
    def guards(self) -> Guardrails | None:
        """The guardrails; None if the plan has none."""
        return None if isinstance(self.guardrails, UnsetType) else self.guardrails

    @property
    def non_inferiority(self) -> NonInferiority | None:
        """The bounds of the claim that a group is not worse; None if the plan asks for a difference."""
        return None if isinstance(self.not_worse, UnsetType) else self.not_worse

    @property
    def claim(self) -> Claim:
        """What the plan sets out to show."""
        return "difference" if self.non_inferiority is None else "not-worse"

    @property
    def prior_df(self) -> int:
        """Prior degrees of freedom of moderated variances; 0: each comparison has its own variance."""
        return prior_df_of(self.variances)

    @property
    def outcome(self) -> Measure:
        """The measure that decides."""
        return self.measures.outcome

    @property
    def any_shape(self) -> bool:
        """True if every interval must hold whatever the shapes of the groups' distributions."""
        return self.shape == "any"

    def largest_difference(self, seen_outcomes: Sequence[float] = ()) -> float:
        """Return the largest possible difference of two outcomes, or a larger one that `seen_outcomes` have.

        The worst and the best possible outcome must be declared.
        """
        assert self.worst is not None
        return self.outcome.largest_difference(self.worst, seen_outcomes)

    @property
    def paired(self) -> bool:
        """True if the runs of one replicate form a pair."""
        return self.test in ("t", "mcnemar")

    @property
    def unit(self) -> str:
        """The word for a replicate, in the singular."""
        return {"mcnemar": "item", "z": "trial"}.get(self.test, "seed")

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups that are compared, in the order of the comparisons."""
        return tuple(dict.fromkeys(name for contrast in self.comparisons for name in contrast.groups))

    @property
    def digits(self) -> int:
        """Decimals of outcomes and differences: 2, or more if the margin has more."""
        return digits_for(self.margin)

    @property
    def margin_words(self) -> str:
        """The margin with its unit: "2 points"."""
        return self.outcome.difference(f"{self.margin:g}")

    def difference(self, value: float, digits: int | None = None) -> str:
        """Write a difference with sign and unit: "+1.20 points"."""
        return self.outcome.difference(signed(value, self.digits if digits is None else digits))

    def size(self, value: float) -> str:
        """Write the size of a difference: "1.20 points"."""
        return self.outcome.difference(f"{value:.{self.digits}f}")

    def value(self, value: float) -> str:
        """Write an outcome: "71.20 %"."""
        return self.outcome.value(f"{value:.{self.digits}f}")

    @property
    def too_few_to_adjust(self) -> bool:
        """Whether the first look has too few replicates to adjust for positions."""
        return (self.looks[0] if self.looks else LEAST_PAIRS) - self.positions < _LEAST_DF

    def least_small(self, replicates: int) -> int | None:
        """Return the number of pairs that a look needs before it may call a difference smaller than the margin.

        Return None for interim looks: none of them may call it smaller, because a group whose runs rarely collapse
        looks fine until the first collapse.
        """
        if replicates not in self.looks:
            return LEAST_OPEN_ENDED_PAIRS
        return LEAST_EQUIVALENCE_PAIRS if replicates == self.looks[-1] else None

    def boundary(self, n_open: int) -> Boundary:
        """Return the boundary for `n_open` undecided comparisons."""
        return next(boundary for boundary in self.boundaries if boundary.open == n_open)


def default_looks(replicates: int, claim: Claim = "difference") -> tuple[int, ...]:
    """Return the numbers of replicates at the looks: (14, 20) for 20, (16, 20, 30) for 30, one look below 16.

    There is a look at half and at 0.7 of the replicates, rounded to an even number. A look at half is left out, and one
    at 0.7 delayed, if it came before EARLIEST_LOOK pairs. The claim `not-worse` has its own earliest look.
    """
    several_from = SEVERAL_LOOKS_FROM
    earliest_look = EARLIEST_LOOK
    if claim == "not-worse":
        several_from = non_inferiority.SEVERAL_LOOKS_FROM
        earliest_look = non_inferiority.EARLIEST_LOOK
    if replicates < several_from:
        return (replicates,)
    half_look = _even(0.5 * replicates)
    later_look = max(_even(0.7 * replicates), earliest_look)
    if half_look < earliest_look:
        return later_look, replicates
    return half_look, later_look, replicates


def _even(number: float) -> int:
    """Round to an even number."""
    return 2 * round(number / 2)


def looks_of(experiment: ExperimentSettings) -> tuple[int, ...]:
    """Return the requested or default looks; an open-ended plan has none."""
    if experiment.open_ended:
        return ()
    claim: Claim = "not-worse" if experiment.guardrails else experiment.claim  # whose looks suit any one-sided test
    return experiment.looks or default_looks(experiment.seeds, claim)


def comparisons(experiment: ExperimentSettings) -> tuple[Contrast, ...]:
    """Return every tested group against the control, or all pairs of tested groups if no control is named."""
    tested_groups = [group.name for group in experiment.groups if group.name not in experiment.untested]
    return contrasts(tested_groups, experiment.control)


def contrasts(groups: Sequence[str], control: str, task: str = "") -> tuple[Contrast, ...]:
    """Return every group against `control`, or all pairs of groups if `control` is ""."""
    if control:
        return tuple(Contrast(a=name, b=control, task=task) for name in groups if name != control)
    return tuple(Contrast(a=a, b=b, task=task) for a, b in combinations(groups, 2))


def adjusts(orders: Sequence[tuple[int, ...]], first_look: int) -> bool:
    """Whether to adjust for positions.

    Yes if position effects can be separated from the groups and the first look has enough df. `orders` has the groups
    by position in the blocks up to the first look; one full cycle is enough.
    """
    return first_look - len(orders[0]) >= _LEAST_DF and estimable_orders(orders)


def boundaries_of(
    alpha: float, count: int, sides: Sides, positions: int, looks: tuple[int, ...], prior_df: int = 0
) -> tuple[Boundary, ...]:
    """Return a boundary for each number of open comparisons from `count` down to 1; open comparisons share `alpha`.

    `prior_df`: of moderated variances; 0: comparisons have their own.
    """
    counts = range(count, 0, -1)
    alphas = tuple(alpha / n_open for n_open in counts)
    bounds = find_bounds(sides, positions, looks, alphas, prior_df=prior_df)
    return tuple(
        Boundary(open=n_open, alpha=share, nominal_p=nominal_values)
        for n_open, share, nominal_values in zip(counts, alphas, bounds, strict=True)
    )


def futility_of(power: float, sides: Sides, positions: int, looks: tuple[int, ...], prior_df: int = 0) -> Futility:
    """Return futility bounds that keep `power` at the margin; they do not depend on a comparison's share of alpha."""
    (bounds,) = find_bounds(sides, positions, looks, (), beta=round(1.0 - power, 9), prior_df=prior_df)
    return Futility(power=power, nominal_p=bounds)


def extended(design: Design, replicates: int) -> Design:
    """Return the design for more seeds after a finished plan of `replicates`, with a stricter anytime-valid rule."""
    if design.anytime_after is not None:
        return design
    return msgspec.structs.replace(design, anytime_after=replicates, evidence=EXTENSION_STRICTNESS / design.alpha)


def rule(design: Design, test: str = "") -> str:
    """Describe the test, the looks and the bounds in one sentence, for the plan and the report.

    `test`: the test that decided, if the outcomes chose another one than the design names.
    """
    if not design.comparisons:
        return "none: nothing is compared with one group"
    parts = []
    if design.boundaries:
        parts.append(_describe_looks(design))
        if design.non_inferiority is not None:
            bounds = _list_bounds(design.looks, design.non_inferiority.nominal_p, design.unit)
            parts.append(f"one-sided at the margin, after {bounds}")
        if design.guards is not None:
            bounds = _list_bounds(design.looks, design.guards.nominal_p, design.unit)
            parts.append(f"then the guardrails, one-sided at their margins, after {bounds}")
        if design.prior_df:
            tasks = {contrast.task for contrast in design.comparisons}
            parts.append(moderation_words(design.prior_df, several_tasks=len(tasks) > 1))
    if design.anytime_after is not None:
        parts.append(_describe_anytime(design, design.anytime_after))
    if not parts:
        return f"none: a verdict needs at least {LEAST_PAIRS} seeds"
    if design.any_shape:
        parts.append("every interval also holds for any shape of the groups' distributions in the range of outcomes")
    return f"{test or test_words(design)}; {'; '.join(parts)}"


def test_words(design: Design) -> str:
    """Describe the test of the design, which decides unless every outcome is 0 or 1."""
    if design.test in _TESTS:
        return _TESTS[design.test]
    if design.outcome_over == "given":  # the positions of runs done elsewhere are unknown
        return "paired t"
    if not design.positions_matter:
        return "paired t, not adjusted for device and order, which cannot matter here"
    if design.adjusted:
        return "paired t, adjusted for device and order"
    return "paired t, not adjusted for device and order"


def _describe_anytime(design: Design, after_seeds: int) -> str:
    """Describe the anytime-valid rule, which holds after `after_seeds` seeds."""
    after_words = f"after {after_seeds} seeds, " if after_seeds else ""
    first_words = f" from the {LEAST_PAIRS}th on" if after_seeds < LEAST_PAIRS else ""
    share = ""
    if len(design.comparisons) > 1:
        share = f" times the {len(design.comparisons)} comparisons that share alpha"
    own_words = " of the comparison's own variance" if design.prior_df else ""
    test_words = f"{after_words}anytime-valid t{own_words} after every pair{first_words}"
    return f"{test_words}, decided at an e-value of {design.evidence:g}{share}"


def _describe_looks(design: Design) -> str:
    sharing_words = ""
    if len(design.comparisons) > 1:
        sharing_words = (
            f"; {len(design.comparisons)} comparisons share alpha {design.alpha:g}, and a comparison that is decided "
            "as larger than the margin hands its share to the others"
        )
    stop_words = ""
    if design.futility is not None:
        stop_words = _describe_futility(design, design.futility)
    elif not design.early_stop and len(design.looks) > 1:
        stop_words = "; no early stop"
    return f"{_list_looks(design)}{sharing_words}{stop_words}"


def _list_looks(design: Design) -> str:
    p = design.boundaries[0].nominal_p
    if design.outcome_over == "given" and len(design.looks) == 1:  # some seeds may have no pair
        unit = f"{design.unit}s"
        if unit == "seeds":
            unit = "pairs" if design.paired else "runs"
        return f"one look at all {unit} (p <= {p[-1]:.2g})"
    looks_words = "one look, after" if len(design.looks) == 1 else "looks after"
    return f"{looks_words} {_list_bounds(design.looks, p, design.unit)}"


def _describe_futility(design: Design, futility: Futility) -> str:
    interim_looks = design.looks[:-1]
    missed_percent = 100.0 * (1.0 - futility.power)
    return (
        "; stops for futility if both one-sided tests at the margin reach their bound, after "
        f"{_list_bounds(interim_looks, futility.nominal_p[: len(interim_looks)])}; this misses at most "
        f"{missed_percent:.3g} % of true "
        "differences as large as the margin, and no other bound depends on it"
    )


def _list_bounds(looks: Sequence[int], nominal_p: Sequence[float], unit: str = "seed") -> str:
    return ", ".join(f"{look} {unit}s (p <= {p:.2g})" for look, p in zip(looks, nominal_p, strict=True))
