"""Do the groups stand clear of what they would come to without learning anything? Pure.

Two groups that learn nothing end alike, and so would any other two: that they do not differ then shows nothing about
them. In clinical trials this is called assay sensitivity (ICH E10). So nothing is called smaller than the margin unless
both groups are shown to be farther than the margin from every baseline there is: guessing, and the host that never
grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from esper_ab.analysis.observe import Pairs
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import outcome_of
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.verdict.finding import Finding

_UNEVEN = 1.05  # of guessing one class only: the classes of a test split are not equally large


@dataclass(frozen=True)
class Distance:
    """How far a group is from a baseline, in points, with its 95 % t interval; without a t the mean twice."""

    mean: float
    low: float
    high: float

    @property
    def said(self) -> str:
        """ "+0.12 points, 95 % interval -0.30 to +0.54"."""
        return f"{self.mean:+.2f} points, 95 % interval {self.low:+.2f} to {self.high:+.2f}"


def findings(history: History, pairs: Pairs) -> Iterator[Finding]:
    """One per comparison and baseline at most; from as many pairs on as an equivalence needs."""
    for contrast in history.design.comparisons:
        used = [pair.replicate for pair in pairs[contrast]]
        if len(used) >= LEAST_EQUIVALENCE_PAIRS:
            yield from _above_guessing(history, contrast, used)
            yield from _off_the_bare_host(history, contrast, used)


def distance(values: Sequence[float], baseline: Sequence[float]) -> Distance:
    """Return how far the outcomes of one group are from the baseline in the same replicates, all in percent."""
    found = paired_difference(values, baseline)
    if found.low is None or found.high is None:
        return Distance(found.mean, found.mean, found.mean)
    return Distance(found.mean, found.low, found.high)


def _above_guessing(history: History, contrast: Contrast, used: Sequence[int]) -> Iterator[Finding]:
    chance, margin = history.plan.chance, history.design.margin
    if chance is None:
        return
    near = {}
    for group in contrast.groups:
        ends = list(_outcomes(history, group, used).values())
        far = distance(ends, [chance * _UNEVEN] * len(ends))
        if far.low <= margin:
            near[group] = far
    if near:
        yield _finding(contrast, near, margin, f"above guessing ({chance:.3g} %)", "that learn nothing")


def _off_the_bare_host(history: History, contrast: Contrast, used: Sequence[int]) -> Iterator[Finding]:
    """A comparison with the bare host itself asks about nothing else."""
    waiting = [group.name for group in history.plan.experiment.groups if group.settings.controller.name == "wait"]
    margin, both = history.design.margin, contrast.groups
    if set(both) & set(waiting):
        return
    for bare in waiting:
        baseline, near = _outcomes(history, bare, used), {}
        for group in both:
            ends = {
                replicate: end for replicate, end in _outcomes(history, group, used).items() if replicate in baseline
            }
            if not ends:
                continue
            far = distance(list(ends.values()), [baseline[replicate] for replicate in ends])
            if far.low <= margin and far.high >= -margin:
                near[group] = far
        if near:
            yield _finding(contrast, near, margin, f"from {bare}, which never grows", "that grow nothing")


def _outcomes(history: History, group: str, replicates: Sequence[int]) -> dict[int, float]:
    """By replicate, percent; of those that have one."""
    ends = {
        run.ref.replicate: outcome_of(run, history.design.outcome_over)
        for run in history.of_group(group)
        if run.ref.replicate in replicates
    }
    return {replicate: end for replicate, end in ends.items() if end is not None}


def _finding(contrast: Contrast, near: dict[str, Distance], margin: float, what: str, who: str) -> Finding:
    each = "; ".join(f"{group} {far.said}" for group, far in near.items())
    are = "is" if len(near) == 1 else "are"
    sentence = (
        f"{' and '.join(near)} {are} not shown to be more than the margin of {margin:g} points {what} ({each}): two "
        f"groups {who} would be as close, so no EQUIVALENT follows."
    )
    return Finding("baseline", "caps equivalence", contrast.groups, sentence)
