"""What a claim could not have seen: a rare collapse of one group's runs. Pure.

A test of means cannot show a collapse that hit none of its runs. So a claim is made again with one further pair, in
which a run that supports the claim has the declared worst outcome, and the other has its group's mean. If no worst
outcome is declared, nothing is said about the effect: where no run collapsed, the worst outcome seen is an ordinary
one, and the claim would survive it although it is false.
"""

from __future__ import annotations

import msgspec
import numpy as np

from esper_ab.design.design import Design
from esper_ab.stats.floats import exact_sum
from esper_ab.stats.least_pairs import unseen_rate
from esper_ab.stats.pair import Data, Pairs, Samples, before, ends
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.looks import ComparisonProgress, retake_look


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """A collapse that may have gone unseen."""

    rate: float  # share of a group's runs; a more frequent collapse would have shown with a chance of 95 %
    worst: float | None  # the outcome of a collapsed run: the declared worst, or a worse one seen; None: none declared
    survives: bool | None  # whether the claim is still made with one further pair, or run, of this kind; None: unknown


def unseen(
    design: Design, data: Data, progress: ComparisonProgress, items: ComparedItems | None = None
) -> Unseen | None:
    """Take the last look again with one more collapsed run; None if there is no claim, or it is about no runs.

    `data` includes the look's runs.
    """
    if items is not None and items.level == "checkpoints":
        return None
    if progress.standing not in ("crossed", "not-worse", "equivalent"):
        return None
    look = progress.looks[-1]
    used_data = before(data, look.replicates)
    rate = unseen_rate(len(used_data))
    if design.worst is None:
        return Unseen(rate=rate, worst=None, survives=None)
    worst_outcome = design.outcome.worst((design.worst, *ends(used_data)))
    lead = progress.direction * design.outcome.sign  # 0.0: neither group is better
    if progress.decision == "not-worse":
        lead = 1.0
    survives = True
    if lead >= 0.0:
        survives = progress.upheld_by(retake_look(design, look, _collapsed(used_data, worst_outcome, of_a=True), items))
    if survives and lead <= 0.0:
        survives = progress.upheld_by(
            retake_look(design, look, _collapsed(used_data, worst_outcome, of_a=False), items)
        )
    return Unseen(rate=rate, worst=worst_outcome, survives=survives)


def _collapsed(used_data: Data, worst_outcome: float, *, of_a: bool) -> Data:
    """Add a pair in which one group (a if `of_a`, else b) has the outcome `worst_outcome` and the other group its mean
    outcome.

    For unpaired runs, add only the run with the worst outcome.
    """
    if isinstance(used_data, Samples):
        if of_a:
            return Samples(a=np.append(used_data.a, worst_outcome), b=used_data.b)
        return Samples(a=used_data.a, b=np.append(used_data.b, worst_outcome))
    if of_a:
        added_pair = msgspec.structs.replace(used_data[0], a=worst_outcome, b=exact_sum(used_data.b) / len(used_data))
    else:
        added_pair = msgspec.structs.replace(used_data[0], a=exact_sum(used_data.a) / len(used_data), b=worst_outcome)
    return used_data.followed_by(Pairs.of([added_pair]))
