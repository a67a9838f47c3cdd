"""Scores of single items that runs lost, in an answer about training: does its claim survive them? Pure.

The numbers are those of the items that no run lost. Scores need not be lost at random, so the last look is taken again
on all items, with the lost scores counted against the claim, as lost runs are (`imputation`): those of the group that
is claimed to be better as the declared worst outcome, those of the other group as the best outcome seen. A claim that a
difference is small must survive both directions. Without a declared worst outcome, nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from esper_ab.contracts.wording import counted
from esper_ab.design.design import Contrast, Design
from esper_ab.stats.floats import Floats, Ints
from esper_ab.stats.item_scores import item_weights
from esper_ab.stats.pair import Data, Samples, before
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.finding import LOST_SCORES, Finding, Weight
from esper_ab.verdict.imputation import completed
from esper_ab.verdict.item_pairing import items_of_runs
from esper_ab.verdict.items_below import GroupItems, ItemsBelow
from esper_ab.verdict.look import Look
from esper_ab.verdict.looks import ComparisonProgress, retake_look
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import HalfPair
from esper_ab.verdict.scale import MEAN, Scale


def lost_score_findings(
    plan: AnalysisPlan, items: ItemsBelow | None, contrast: Contrast, pairing: Pairing, progress: ComparisonProgress
) -> Iterator[Finding]:
    """Yield a finding if the runs of a comparison about training lost scores on single items.

    It caps the verdict unless a worst outcome is declared with which the claim survives. About checkpoints, a lost item
    is a lost row.
    """
    if items is None or items.level == "checkpoints":
        return
    scales = [scale for scale in plan.scales if contrast.task in (scale.task, MEAN)]
    a, b = (items.lost_of(group, [scale.task for scale in scales]) for group in contrast.groups)
    if not a and not b:
        return
    lost_counts = (
        f"{counted(a, 'score')} of {contrast.a} and {b} of {contrast.b} were lost, so their {items.unit}s are left out"
    )
    if any(scale.worst is None for scale in scales):
        end = f"; for a verdict, give a failed {items.unit} its worst outcome (--worst), or remove it from all runs."
        yield _finding("caps", contrast, lost_counts + end)
    elif not progress.claimed:
        yield _finding("caps equivalence", contrast, f"{lost_counts}.")  # nor does a gate take a group for not worse
    else:
        weight = _weight(plan, items, contrast, scales, pairing, progress)
        effect = "overturns it" if weight == "caps" else "leaves it standing"
        counted_against = "counting each as the worst outcome or as the best one seen, whichever speaks more against"
        yield _finding(weight, contrast, f"{lost_counts}; {counted_against} the decision, {effect}.")


def _finding(weight: Weight, contrast: Contrast, sentence: str) -> Finding:
    return Finding(kind=LOST_SCORES, weight=weight, groups=contrast.groups, sentence=sentence)


def _weight(
    plan: AnalysisPlan,
    items: ItemsBelow,
    contrast: Contrast,
    scales: Sequence[Scale],
    pairing: Pairing,
    progress: ComparisonProgress,
) -> Weight:
    """Return what the lost scores of a claim mean for the verdict."""
    design = plan.design_of(contrast)
    look = progress.looks[-1]
    against = {}
    for group in contrast.groups:
        filled_items = _filled(items, contrast, scales, against=group)
        compared_items = items_of_runs(plan, filled_items, contrast, [scale.task for scale in scales], pairing)
        against[group] = _retake(
            design, look, pairing, compared_items, closed=items.closed, against_a=group == contrast.a
        )
    if progress.decision == "equivalent":
        claim_stands = all(map(progress.upheld_by, against.values()))
    else:
        favours_a = progress.favours_a(design.outcome.sign)
        better_group = contrast.a if favours_a else contrast.b
        claim_stands = progress.upheld_by(against[better_group])
    if not claim_stands:
        return "caps"
    if all(look.small for look in against.values()):
        return "notes"
    return "caps equivalence"


def _filled(items: ItemsBelow, contrast: Contrast, scales: Sequence[Scale], *, against: str) -> ItemsBelow:
    """Return the items of both groups with lost scores at their worst for the group `against`, at their best else."""
    groups = dict(items.groups)
    for scale in scales:
        blocks = {group: items.groups[group, scale.task] for group in contrast.groups}
        seen_scores = np.concatenate([block.scores[np.isfinite(block.scores)] for block in blocks.values()]).tolist()
        assert scale.worst is not None
        worst_score = scale.outcome.worst((scale.worst, *seen_scores))
        best_score = max(seen_scores) if scale.outcome.sign > 0.0 else min(seen_scores)
        for group, block in blocks.items():
            groups[group, scale.task] = _fill(block, worst_score if group == against else best_score)
    return replace(items, groups=groups)


def _fill(block: GroupItems, value: float) -> GroupItems:
    scores = np.where(np.isnan(block.scores), value, block.scores)
    return replace(block, scores=scores, used=np.ones_like(block.used))


def _retake(
    design: Design, look: Look, pairing: Pairing, items: ComparedItems, *, closed: bool, against_a: bool
) -> Look:
    """Take a look again with filled items, and with lost runs counted against the same group."""
    halves = [_filled_half(half, items) for half in pairing.lost.before(look.replicates).replicates]
    data = before(_filled_data(pairing.pairs, items), look.replicates)
    full, _, _ = completed(design, data, halves, against_a=against_a)
    return retake_look(design, look, full, None if closed else items)


def _filled_data(data: Data, items: ComparedItems) -> Data:
    """Return the runs with the outcomes that the filled items give."""
    a = _outcomes(items.a, items.tasks)
    b = _outcomes(items.b, items.tasks_b)
    if isinstance(data, Samples):
        return replace(data, a=a, b=b)
    return replace(data, a=a[data.replicate], b=b[data.replicate])


def _filled_half(half: HalfPair, items: ComparedItems) -> HalfPair:
    """Return a half pair with the outcome that the filled items give to the run that was not lost."""
    if half.a is not None:
        return msgspec.structs.replace(half, a=float(_outcomes(items.a, items.tasks)[half.replicate]))
    if half.b is not None:
        return msgspec.structs.replace(half, b=float(_outcomes(items.b, items.tasks_b)[half.replicate]))
    return half


def _outcomes(scores: Floats | None, tasks: Ints | None) -> Floats:
    """Return the outcome of each run from its scores [runs, items]."""
    assert scores is not None
    weights = item_weights(scores, tasks)
    return np.asarray(scores @ weights / weights.size, dtype=np.float64)
