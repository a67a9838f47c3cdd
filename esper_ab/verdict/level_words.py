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
    most = max(items.items_of(group, task) for group in groups for task in tasks)
    what = "run" if items.level == "trainings" else "checkpoint"
    each = f"{counted(runs, what)} x {counted(most, items.unit)}"
    fewest, largest = items.repeats
    if largest > 1:
        each += f" x {largest} repeats" if fewest == largest else f" ({fewest} to {largest} repeats of each)"
    if items.clustered:
        each += " in clusters"
    where = f" in {counted(len(groups), 'group')}"
    if len(tasks) > 1:
        where += f" and {counted(len(tasks), 'task')}"
    level = str(items.level)
    if items.closed:
        level += f", on these {items.unit}s only"
    return f"Read: {each}{where}; level: {level}."


def about(asked: AskedItems | None) -> str:
    """Return what an answer is about, with a space before it, as in " on these 500 questions"; "" without items."""
    if asked is None:
        return ""
    these = f"on these {counted(asked.items, asked.unit)}"
    if asked.level == "checkpoints":
        return f" {these}"
    return f" for new training runs {these}" if asked.closed else f" for new training runs and new {asked.unit}s"


def opened(asked: AskedItems | None) -> str:
    """Return the beginning of an answer, as in "On these 500 questions, "; "" without items."""
    words = about(asked).strip()
    return f"{words[0].upper()}{words[1:]}, " if words else ""


def names(asked: AskedItems | None, a: str, b: str) -> tuple[str, str]:
    """Return what is compared of the groups a and b: their checkpoints, unless the answer is about training."""
    if asked is None or asked.level == "trainings":
        return a, b
    return _checkpoint(a, asked.runs_a), _checkpoint(b, asked.runs_b)


def _checkpoint(group: str, runs: int) -> str:
    return f"checkpoint {group}" if runs == 1 else f"the mean of {runs} checkpoints of {group}"


def closing(asked: AskedItems, a: str, b: str) -> str:
    """Return the end of a headline: the numbers of runs and items or, about checkpoints, what it says nothing about."""
    if asked.level == "checkpoints":
        if asked.runs_a == asked.runs_b == 1:
            return ". One training run each: this says nothing about training again."
        return ". These training runs only: this says nothing about training again."
    if asked.runs_a == asked.runs_b:
        return f"; {counted(asked.runs_a, 'run')} x {counted(asked.items, asked.unit)} per group."
    return f"; {counted(asked.runs_a, 'run')} of {a} and {asked.runs_b} of {b} x {counted(asked.items, asked.unit)}."


def level_rule(items: ItemsBelow, design: Design) -> str:
    """Describe the rule by which a comparison with items is decided."""
    unit = items.unit
    if items.level == "checkpoints":
        test = f"exact test if every outcome is 0 or 1, t over {unit}s otherwise"
        if items.clustered:
            test = f"t over clusters of {unit}s"
        enough = f"{LEAST_ITEMS} independent {unit}s"
        small = ""
    else:
        test = f"t over runs and {unit}s"
        enough = f"{LEAST_PAIRS} runs per group and {LEAST_TRAINING_ITEMS} independent {unit}s"
        small = f", with {LEAST_EQUIVALENCE_PAIRS} runs or more,"
    looks = rule(design).partition("; ")[2]
    if items.level == "checkpoints":
        looks = looks.replace("pairs", f"{unit}s").replace("runs", f"{unit}s")
    within = f"{small or ' then'} the interval lies within +-{design.margin_words}"
    return (
        f"{test}{'; ' if looks else ''}{looks}. BETTER or WORSE if that bound is reached with {enough} or more. "
        f"EQUIVALENT (BELOW MARGIN after BETTER or WORSE) if{within}. Otherwise INCONCLUSIVE. Lost scores can cap a "
        "verdict."
    )
