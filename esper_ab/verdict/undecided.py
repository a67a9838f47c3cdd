"""What an open comparison shows although its test of a mean does not decide: direction, ratio, and outliers. Pure.

Nothing here decides. The sentences stand beside INCONCLUSIVE at the end of a plan, unless the audit or lost runs are
the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from esper_ab.contracts.wording import n_pairs
from esper_ab.stats.descriptive.iqm import IQMDifference
from esper_ab.stats.least_pairs import LEAST_PAIRS, smallest_p
from esper_ab.stats.pair import Pairs, ends
from esper_ab.stats.resampling import LEVEL
from esper_ab.stats.text import p_text, percent
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import Verdict

_STEADY = 0.1  # SD of the logarithms of ratios that count as constant, but for noise
_CLEAR = 3.0  # SDs by which their mean must differ from 0, the logarithm of equality
_FENCES = 3.0  # interquartile ranges beyond a quartile at which Tukey's outer fences lie


def undecided_caveats(evidence: Evidence) -> Iterator[str]:
    """Give the exact p of pairs that all agree in direction; advise logarithms, or show the interquartile mean."""
    pairs = evidence.pairs[: evidence.used]
    if evidence.verdict is not Verdict.INCONCLUSIVE or evidence.capped_by or not evidence.progress.finished:
        return
    if evidence.items is not None or len(pairs) < LEAST_PAIRS or evidence.proportions is not None or evidence.constant:
        return
    yield from _direction_caveat(evidence, pairs)
    ratio = _ratio_caveat(evidence, pairs)
    if ratio:
        yield ratio
    else:
        yield from _outlier_caveat(evidence, pairs)


def _direction_caveat(evidence: Evidence, pairs: Pairs) -> Iterator[str]:
    """Give the exact p if every pair has the same direction and it would suffice; ties have no direction."""
    p = smallest_p(len(pairs))
    signs = np.sign(pairs.differences)
    direction = float(signs[0]) * evidence.question.sign
    if direction and np.all(signs == signs[0]) and p <= evidence.question.alpha:
        better_group = evidence.question.a if direction > 0.0 else evidence.question.b
        yield (
            f"{better_group} is better in all {n_pairs(len(pairs))} (exact sign test p {p_text(p)}), but how much "
            "better on average is not shown; this decides nothing."
        )


def _ratio_caveat(evidence: Evidence, pairs: Pairs) -> str:
    """Advise the logarithm of the outcome if one group is nearly the same multiple of the other in every pair."""
    if evidence.question.task == MEAN or min(ends(pairs)) <= 0.0:
        return ""
    logs = np.log(pairs.a / pairs.b)
    sd = float(np.std(logs, ddof=1))
    mean = float(np.mean(logs))
    if sd > _STEADY or abs(mean) <= _CLEAR * sd:
        return ""
    a = evidence.question.a
    b = evidence.question.b
    low, high = np.exp([logs.min(), logs.max()])
    return (
        f"The outcome of {a} is {np.exp(mean):.2f} times that of {b} ({low:.2f} to {high:.2f} in all pairs): if ratios "
        "matter, compare the logarithms of the outcomes of new runs."
    )


def _outlier_caveat(evidence: Evidence, pairs: Pairs) -> Iterator[str]:
    """Give the difference of interquartile means if pairs lie beyond Tukey's outer fences on both sides.

    Pairs on one side only may be what one group does wrong, and no statistic that leaves them out speaks of that.
    """
    differences = pairs.differences
    low, high = np.quantile(differences, (0.25, 0.75))
    outliers_below = int(np.sum(differences < low - _FENCES * (high - low)))
    outliers_above = int(np.sum(differences > high + _FENCES * (high - low)))
    iqm: IQMDifference | None = evidence.descriptive["iqm"]
    if not outliers_below or not outliers_above or iqm is None or not iqm.honest:
        return
    design = evidence.design
    limits = f"{design.difference(iqm.low)} to {design.difference(iqm.high)}"
    yield (
        f"{outliers_below + outliers_above} of {n_pairs(len(pairs))} lie far from the others (by more than three "
        "interquartile ranges), "
        f"{outliers_below} below and {outliers_above} above, and widen the interval. The difference of the "
        "interquartile means, which "
        f"leave out a quarter of the runs at either end, is {design.difference(iqm.mean)} ({percent(LEVEL)} bootstrap "
        f"interval {limits}); it decides nothing."
    )
