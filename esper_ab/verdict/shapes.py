"""What the shape of the differences says about a claim: its error rate, and what a far tail may do. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.design.design import Design
from esper_ab.stats.error_rates import LookPlan, Tail, far_tail, rate_of_skewness, rate_of_tail
from esper_ab.stats.skewness import skewness
from esper_ab.stats.text import percent
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import CLAIMS, DIFFERENT, Verdict

SAID_FROM = 0.08  # lowest error rate that gets a caveat
_SIMULATED_ALPHA = 0.05
_MOST_ITEMS = 1000  # of checkpoints, for which shapes are looked at


def shape_caveats(evidence: Evidence) -> Iterator[str]:
    """Warn of means that a far tail allows and the claim excludes, and of a raised error rate for this shape."""
    if evidence.verdict not in CLAIMS or evidence.samples is not None or evidence.proportions is not None:
        return
    if evidence.about_checkpoints and not _few_independent_items(evidence):
        return
    if evidence.level.any_shape:
        return
    if evidence.verdict not in DIFFERENT:
        yield from (_tail_caveat(evidence, tail, sign) for tail, sign in tails_beyond_margin(evidence))
        return
    differences = evidence.pairs[: evidence.used].differences
    sign = float(evidence.progress.direction)
    plan = look_plan(evidence.design, evidence.used)
    signed_differences = sign * differences
    tail = far_tail(signed_differences)
    if tail is not None and tail.least_mean <= 0.0:
        yield _tail_caveat(evidence, tail, sign)
        rate: float | None = rate_of_tail(tail, plan)
        shape_words = f"of which {percent(tail.count / tail.pairs)} fall like this"
    else:
        rate = rate_of_skewness(signed_differences, plan)
        opposing_skewness = -(skewness(signed_differences) or 0.0)
        shape_words = f"as skewed as these (skewness {opposing_skewness:.1f} against the claim)"
    if rate is not None and rate >= SAID_FROM:
        yield _rate_caveat(evidence, rate, shape_words)


def _few_independent_items(evidence: Evidence) -> bool:
    """True if shapes matter: means of many items are nearly normal, and the rates are those of independent pairs."""
    is_independent = evidence.items is None or evidence.items.plain
    return is_independent and evidence.used <= _MOST_ITEMS


def tails_beyond_margin(evidence: Evidence) -> list[tuple[Tail, float]]:
    """Return the far tails whose share may be so large that the mean reaches the margin, each with its side.

    The side is 1.0 if the tail lies below the other differences, -1.0 if above.
    """
    if evidence.samples is not None or evidence.proportions is not None or evidence.level.any_shape:
        return []
    if evidence.about_checkpoints and not _few_independent_items(evidence):
        return []
    differences = evidence.pairs[: evidence.used].differences
    tails_found = []
    for side in (1.0, -1.0):
        tail = far_tail(side * differences)
        against_claim = evidence.verdict is not Verdict.NOT_WORSE or side == evidence.question.sign
        if against_claim and tail is not None and tail.least_mean <= -evidence.design.margin:
            tails_found.append((tail, side))
    return tails_found


def look_plan(design: Design, pairs: int) -> LookPlan:
    """Return when the comparisons of `design` are tested; a single look is taken after `pairs` pairs."""
    groups: dict[str, set[str]] = {}  # by task
    for contrast in design.comparisons:
        if contrast.task != MEAN:
            groups.setdefault(contrast.task, set()).update(contrast.groups)
    independent_contrasts = sum(len(names) - 1 for names in groups.values())
    if not design.looks:
        return LookPlan(looks="after every pair", first=pairs, comparisons=independent_contrasts)
    if len(design.looks) == 1:
        return LookPlan(looks="one look", first=pairs, comparisons=independent_contrasts)
    return LookPlan(looks="several looks", first=design.looks[0], comparisons=independent_contrasts)


def _tail_caveat(evidence: Evidence, tail: Tail, sign: float) -> str:
    """Say how the far tail differs from the other differences, and which means its share allows."""
    difference = evidence.design.difference
    low, high = tail.shares
    means = [sign * tail.mean_at(share) for share in (low, high)]
    verb = "lies" if tail.count == 1 else "lie"
    distance_words = f"({difference(sign * tail.mean)} against {difference(sign * tail.others)})"
    return (
        f"{tail.count} of {evidence.counted(tail.pairs)} {verb} further from the others {distance_words} than these "
        "from one "
        f"another. Such {evidence.worded('pairs')} may be {100.0 * low:.2g} to {100.0 * high:.2g} % of all, which "
        f"gives a mean from {difference(means[0])} to {difference(means[1])}."
    )


def _rate_caveat(evidence: Evidence, rate: float, shape_words: str) -> str:
    """Say how often such a plan is wrong about differences of this shape."""
    alpha = evidence.design.alpha
    several = len(evidence.design.comparisons) > 1
    number_words = evidence.worded("with as many pairs, tasks and groups" if several else "with as many pairs")
    plan_words = "with --shape any" if evidence.question.has_records else "by `esper-ab design --shape any`"
    alpha_words = "" if alpha == _SIMULATED_ALPHA else f" (at an alpha of {percent(_SIMULATED_ALPHA)})"
    return (
        f"If the true mean is 0, differences {shape_words} give a false claim in about {percent(round(rate, 2))} of "
        f"experiments {number_words}{alpha_words}, not in {percent(alpha)}; a plan {plan_words} would keep to that."
    )
