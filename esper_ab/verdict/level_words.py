"""The words for the level of an answer: what was read, and what the answer is about. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import counted
from esper_ab.design.design import Design, rule
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.verdict.items_below import ItemsBelow
from esper_ab.verdict.question import AskedItems
from esper_ab.verdict.sample import LEAST_ITEMS, LEAST_TRAINING_ITEMS


def reading(items: ItemsBelow) -> str:
    """Say what was read and at which level the answer is, for the user to check before reading the answer."""
    groups = list(dict.fromkeys(group for group, _ in items.groups))
    tasks = list(dict.fromkeys(task for _, task in items.groups))
    runs = sum(items.most_runs(group) for group in groups)
    most_items = max(items.items_of(group, task) for group in groups for task in tasks)
    unit_words = "run" if items.level == "trainings" else "checkpoint"
    size_words = f"{counted(runs, unit_words)} x {counted(most_items, items.unit)}"
    fewest_repeats, most_repeats = items.repeats
    if most_repeats > 1:
        size_words += (
            f" x {most_repeats} repeats"
            if fewest_repeats == most_repeats
            else f" ({fewest_repeats} to {most_repeats} repeats of each)"
        )
    if items.clustered:
        size_words += " in clusters"
    group_words = f" in {counted(len(groups), 'group')}"
    if len(tasks) > 1:
        group_words += f" and {counted(len(tasks), 'task')}"
    level = str(items.level)
    if items.closed:
        level += f", on these {items.unit}s only"
    return f"Read: {size_words}{group_words}; level: {level}."


def about(items_question: AskedItems | None) -> str:
    """Return what an answer is about, with a space before it, as in " on these 500 questions"; "" without items."""
    if items_question is None:
        return ""
    items_words = f"on these {counted(items_question.items, items_question.unit)}"
    if items_question.level == "checkpoints":
        return f" {items_words}"
    return (
        f" for new training runs {items_words}"
        if items_question.closed
        else f" for new training runs and new {items_question.unit}s"
    )


def opened(items_question: AskedItems | None) -> str:
    """Return the beginning of an answer, as in "On these 500 questions, "; "" without items."""
    words = about(items_question).strip()
    return f"{words[0].upper()}{words[1:]}, " if words else ""


def names(items_question: AskedItems | None, a: str, b: str) -> tuple[str, str]:
    """Return what is compared of the groups a and b: their checkpoints, unless the answer is about training."""
    if items_question is None or items_question.level == "trainings":
        return a, b
    return _checkpoint(a, items_question.runs_a), _checkpoint(b, items_question.runs_b)


def _checkpoint(group: str, runs: int) -> str:
    return f"checkpoint {group}" if runs == 1 else f"the mean of {runs} checkpoints of {group}"


def closing(items_question: AskedItems, a: str, b: str) -> str:
    """Return the end of a headline: the numbers of runs and items or, about checkpoints, what it says nothing about."""
    if items_question.level == "checkpoints":
        if items_question.runs_a == items_question.runs_b == 1:
            return ". One training run each: this says nothing about training again."
        return ". These training runs only: this says nothing about training again."
    if items_question.runs_a == items_question.runs_b:
        return (
            f"; {counted(items_question.runs_a, 'run')} x {counted(items_question.items, items_question.unit)} per "
            "group."
        )
    return (
        f"; {counted(items_question.runs_a, 'run')} of {a} and {items_question.runs_b} of {b} x "
        f"{counted(items_question.items, items_question.unit)}."
    )


def level_rule(items: ItemsBelow, design: Design) -> str:
    """Describe the rule by which a comparison with items is decided."""
    unit = items.unit
    if items.level == "checkpoints":
        test = f"exact test if every outcome is 0 or 1, t over {unit}s otherwise"
        if items.clustered:
            test = f"t over clusters of {unit}s"
        enough_words = f"{LEAST_ITEMS} independent {unit}s"
        small_words = ""
    else:
        test = f"t over runs and {unit}s"
        enough_words = f"{LEAST_PAIRS} runs per group and {LEAST_TRAINING_ITEMS} independent {unit}s"
        small_words = f", with {LEAST_EQUIVALENCE_PAIRS} runs or more,"
    looks = rule(design).partition("; ")[2]
    if items.level == "checkpoints":
        looks = looks.replace("pairs", f"{unit}s").replace("runs", f"{unit}s")
    interval_words = f"{small_words or ' then'} the interval lies within +-{design.margin_words}"
    return (
        f"{test}{'; ' if looks else ''}{looks}. BETTER or WORSE if that bound is reached with {enough_words} or more. "
        f"EQUIVALENT (BELOW MARGIN after BETTER or WORSE) if{interval_words}. Otherwise INCONCLUSIVE. Lost scores can "
        "cap a "
        "verdict."
    )
