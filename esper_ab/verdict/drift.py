"""Whether the differences of a comparison depend on when its pairs were run, which caps what may be claimed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.design.design import Contrast, Design
from esper_ab.stats.drift import drift
from esper_ab.stats.pair import Pairs
from esper_ab.stats.text import p_text
from esper_ab.verdict.finding import Finding

DRIFT = "drift"  # kind of the finding
_UNUSUAL = 0.01  # p of a drift, over all comparisons and both tests


def drift_findings(design: Design, contrast: Contrast, pairs: Pairs, remedy: str) -> Iterator[Finding]:
    """Yield a finding that caps the verdict if the `pairs` of a comparison drift. Pairs must be numbered in run order.

    `remedy`: how to repeat the experiment, as a sentence.
    """
    positions = design.positions if design.adjusted else 1
    drift_measured = drift(pairs, positions)
    if drift_measured is None:
        return
    level = _UNUSUAL / (2 * len(design.comparisons))
    signs = []
    if drift_measured.slope_p <= level:
        signs.append(
            f"a trend of {design.difference(drift_measured.slope)} per pair (p {p_text(drift_measured.slope_p)})"
        )
    if drift_measured.autocorrelation_p <= level:
        p = p_text(drift_measured.autocorrelation_p)
        signs.append(f"an autocorrelation of {drift_measured.autocorrelation:.2f} from one pair to the next (p {p})")
    if signs:
        yield Finding(
            kind=DRIFT,
            weight="caps",
            groups=contrast.groups,
            sentence=f"The differences of {contrast.a} and {contrast.b} drift: {' and '.join(signs)}. Intervals assume "
            f"independent pairs, and a drifting group looks like an effect. {remedy}",
        )
