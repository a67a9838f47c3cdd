"""What stands beside an answer about items: another level's answer, and what to buy next, runs or items. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.wording import counted
from esper_ab.stats.item_advice import ItemAdvice, item_advice
from esper_ab.stats.item_difference import ItemDifference, item_difference
from esper_ab.stats.text import percent, signed
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.sample import LEAST_ITEMS
from esper_ab.verdict.verdict import DIFFERENT

_MOST_ADVISED = 3  # comparisons: what each of many pairs needs is no plan
_MOST = 10_000  # runs or items that an advice names


def level_caveats(evidence: Evidence) -> Iterator[str]:
    """Say what holds at the lower level if it does not hold here, and how to get an interval of half the width.

    Neither is the reason why a check allows no verdict.
    """
    if evidence.question.items is None or evidence.items is None or evidence.capped_by:
        return
    yield from _lower_level(evidence)
    if evidence.verdict not in DIFFERENT and len(evidence.design.comparisons) <= _MOST_ADVISED:
        yield from _advice(evidence)


def _lower_level(evidence: Evidence) -> Iterator[str]:
    """If training is not shown to differ, say whether these checkpoints do, on items like these."""
    items_question = evidence.question.items
    if items_question is None or items_question.level != "trainings" or evidence.verdict in DIFFERENT:
        return
    items = evidence.items
    scores = None if items is None else items.scores(evidence.samples or evidence.pairs[: evidence.used])
    if scores is None:
        return
    checkpoint_difference = item_difference(scores, "checkpoints")
    alpha = evidence.level_alpha
    interval = checkpoint_difference.interval(alpha)
    if interval is None or checkpoint_difference.effective_clusters < LEAST_ITEMS or interval[0] <= 0.0 <= interval[1]:
        return
    design = evidence.design
    digits = design.digits
    limits = f"{signed(interval[0], digits)} to {signed(interval[1], digits)}"
    runs = (
        str(items_question.runs_a)
        if items_question.runs_a == items_question.runs_b
        else f"{items_question.runs_a} and {items_question.runs_b}"
    )
    yield (
        f"These checkpoints do differ on {items_question.unit}s like these "
        f"({design.difference(checkpoint_difference.mean)}, "
        f"{percent(1.0 - alpha)} interval {limits}), but {runs} runs per group do not show that training does; the "
        "question about training decides."
    )


def _advice(evidence: Evidence) -> Iterator[str]:
    effect = evidence.effect
    items_question = evidence.question.items
    if items_question is None or not isinstance(effect, ItemDifference):
        return
    advice = item_advice(effect, evidence.level_alpha)
    if advice is None:
        return
    half_width_words = f"An interval of half the width (+-{evidence.design.size(advice.goal)})"
    items = _items(advice, items_question.unit)
    if items_question.level == "checkpoints":
        if items:
            yield f"{half_width_words} takes {items}."
        return
    runs = _runs(advice, items_question.unit)
    if runs and items:
        yield f"{half_width_words} takes {runs}, or {items} with these runs."
    elif runs:
        yield f"{half_width_words} takes {runs}; no number of {items_question.unit}s gives it with these runs."
    elif items:
        yield (
            f"{half_width_words} takes {items} with these runs; no number of runs gives it on these "
            f"{items_question.unit}s."
        )
    else:
        yield f"{half_width_words} takes more runs and more {items_question.unit}s; neither alone gives it."


def _runs(advice: ItemAdvice, unit: str) -> str:
    if advice.runs_needed is None or advice.runs_needed > _MOST:
        return ""
    return f"about {counted(advice.runs_needed, 'run')} per group on these {unit}s"


def _items(advice: ItemAdvice, unit: str) -> str:
    if advice.items_needed is None or advice.items_needed > 1000 * advice.items:
        return ""
    return f"about {counted(advice.items_needed, unit)}"
