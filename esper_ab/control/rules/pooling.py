"""`--share-observation-norm`: one set of observation moments out of those of a block's learners.

A learner reports the moments of all that it has trained on; the release of a milestone carries those of all learners of
the block, and holds from the next episode on. The sum does not depend on the order of its terms, so neither start order
nor who arrived first can move a bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from esper_ab.contracts.messages import EpisodeFinished
from esper_ab.contracts.records import Moments
from esper_ab.control.rules.validation import Rejected, Report
from esper_ab.journal.fold import History


def pooled(parts: Sequence[Moments]) -> Moments:
    """Moments of the rows of all `parts` together (Chan, Golub & LeVeque 1979); ValueError for different widths.

    Sums are exact and rounded once (`math.fsum`), deviations are taken from the smallest mean: equal parts keep their
    mean to the bit, and one part is itself.
    """
    some = [part for part in parts if part.count] or list(parts[:1])
    total = sum(part.count for part in some)
    mean, squares = [], []
    for column in zip(*(zip(part.mean, part.squares, strict=True) for part in some), strict=True):
        counts_means = [(part.count, of_part) for part, (of_part, _) in zip(some, column, strict=True)]
        lowest = min(of_part for of_part, _ in column)
        centre = lowest + math.fsum(n * (x - lowest) for n, x in counts_means) / max(total, 1)
        mean.append(centre)
        squares.append(math.fsum([*(s for _, s in column), *(n * (x - centre) ** 2 for n, x in counts_means)]))
    return Moments(count=total, mean=tuple(mean), squares=tuple(squares))


def to_release(history: History, block: int, milestone: int, runs: Iterable[str]) -> Moments | msgspec.UnsetType:
    """What the release of `milestone` carries to the learners among `runs`, all of the block's that take part.

    What was released once stays, whoever comes later. UNSET where nothing is shared, and before the first episode and
    after the evaluation.
    """
    experiment = history.plan.experiment
    if not experiment.share_observation_norm or not 1 <= milestone <= experiment.episodes:
        return msgspec.UNSET
    if (block, milestone) in history.shared:
        return history.shared[block, milestone]
    parts = [moments for run in runs if (moments := history.runs[run].observations) is not None]
    return pooled(parts) if parts else msgspec.UNSET


def check_width(history: History, report: Report) -> None:
    """Rejected when `report` has moments of another width than those of the other learners in its block."""
    if not isinstance(report, EpisodeFinished) or report.observations is None:
        return
    width = len(report.observations.mean)
    for spec in history.blocks[history.runs[report.run.name].spec.ref.replicate].runs:
        other = history.runs[spec.ref.name].observations
        if other is not None and len(other.mean) != width:
            raise Rejected(f"sent moments of {width} columns where {spec.ref.name} observes {len(other.mean)}")
