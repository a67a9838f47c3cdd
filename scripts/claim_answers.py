"""What the stored answer of a claim says: its verdicts, its answer in words, and how far its groups came."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from claim_registry import StoredClaim

from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import Verdict

IN_MARGINS = ("estimate", "low", "high")
NO_DIFFERENCE = (Verdict.EQUIVALENT, Verdict.IDENTICAL)
BETTER = (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)
WORSE = (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)
SMALL_DIFFERENCE = (Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN)
SHOWN = {  # by the verdict on one task
    "better-than": BETTER,
    "worse-than": WORSE,
    "equivalent-to": NO_DIFFERENCE,
    "not-worse-than": (*BETTER, *NO_DIFFERENCE, Verdict.NOT_WORSE),
}
NEAR = 0.15  # of the way from random to good: a mean outcome closer to one end is near it
_WAY = re.compile(r"(-?\d+) to (-?\d+)(?: %)?(?: on (\w+))?")


@dataclass(frozen=True)
class Judged:
    """The comparisons of an answer: a claim's own, on its only task or on the mean of several, and others."""

    own: dict[str, Any]
    on_tasks: list[dict[str, Any]]  # the same groups on each of several tasks
    others: list[dict[str, Any]]  # other groups, on the only task

    @classmethod
    def of(cls, claim: StoredClaim, verdict_json: dict[str, Any]) -> Judged:
        """Find the claim's comparison in a verdict.json of one task or of several."""
        comparisons: list[dict[str, Any]] = verdict_json.get("judged", verdict_json)["comparisons"]
        first_group, _, second_group = claim.condition
        (own,) = (
            comparison
            for comparison in comparisons
            if (comparison["a"], comparison["b"]) == (first_group, second_group)
            and comparison.get("task", MEAN) == MEAN
        )
        rest = [comparison for comparison in comparisons if comparison is not own]
        if "judged" in verdict_json:
            return cls(own, rest, [])
        return cls(own | {key: own[key] / own["margin"] for key in IN_MARGINS if own[key] is not None}, [], rest)

    @classmethod
    def stored(cls, claim: StoredClaim) -> Judged | None:
        """Find it in the folder of a claim; None if the claim has no answer yet."""
        verdict_json = claim.stored("verdict.json")
        return None if verdict_json is None else cls.of(claim, verdict_json)

    @property
    def verdicts(self) -> str:
        """The verdicts on each task, or of all comparisons on the only one."""
        if self.on_tasks:
            names = [(task_name(comparison), comparison) for comparison in self.on_tasks]
        else:
            names = [(f"{one['a']} - {one['b']}", one) for one in (self.own, *self.others)]
        return "; ".join(f"{name} {comparison['verdict']}" for name, comparison in names)


def answer_to(claim: StoredClaim, conditions: dict[str, bool], judged: Judged) -> str:
    """Say what an answer says about the sentence: the conditions that it meets, and its verdicts."""
    _, relation, _ = claim.condition
    if conditions[relation]:
        return "holds"
    if conditions["equivalent-to"]:
        return "no difference that matters"
    if conditions["better-than"] or conditions["worse-than"]:
        return "a difference" if relation == "equivalent-to" else "the opposite holds"
    if {Verdict.BETTER, Verdict.WORSE} <= {comparison["verdict"] for comparison in judged.on_tasks}:
        return "depends on the task"
    return "no difference on the mean" if judged.own["verdict"] in NO_DIFFERENCE else "open"


def shown(claim: StoredClaim, conditions: dict[str, bool], judged: Judged) -> str:
    """Say on how many of several tasks an answer is shown, or which task differs nevertheless; "" on one task."""
    if not judged.on_tasks:
        return ""
    answer = answer_to(claim, conditions, judged)
    if answer in ("holds", "the opposite holds", "a difference"):
        met = [relation for relation, is_met in conditions.items() if is_met]
        own_relation = claim.condition[1]
        return _shown_on(judged, own_relation if own_relation in met else met[0])
    if answer == "depends on the task":  # whose verdicts stand beside it
        return ""
    return _differing_tasks(judged)


def _shown_on(judged: Judged, relation: str) -> str:
    """Say on how many tasks the verdict is that of an answer, and where the difference is less than a margin."""
    verdicts = [Verdict(comparison["verdict"]) for comparison in judged.on_tasks]
    count = sum(verdict in SHOWN[relation] for verdict in verdicts)
    below = ""
    if Verdict(judged.own["verdict"]) in SMALL_DIFFERENCE:
        below = ", by less than a margin"
    if count < len(verdicts):
        return f" on the mean{below}; shown on {count} of {len(verdicts)} tasks"
    small = [task_name(comparison) for comparison in judged.on_tasks if comparison["verdict"] in SMALL_DIFFERENCE]
    if small and not below:
        below = f", on {' and '.join(small)} by less than a margin"
    return f" on each of {count} tasks{below}"


def _differing_tasks(judged: Judged) -> str:
    """Name the tasks on which there is a difference, though there is none on the mean."""
    differing = [
        f"{comparison['verdict']} on {task_name(comparison)}"
        for comparison in judged.on_tasks
        if comparison["verdict"] in BETTER + WORSE
    ]
    if not differing:
        return ""
    return f"; {' and '.join(differing)}"


def task_name(comparison: dict[str, Any]) -> str:
    """Name a task without its library and its version."""
    return str(comparison["task"]).removeprefix("gym:").partition("-v")[0].replace(".py:", ", ")


@dataclass(frozen=True)
class Level:
    """The outcomes of one group on one task."""

    group: str
    mean: float
    sd: float
    share: float  # of the way from random actions, or a host that never grows, to good

    @property
    def near(self) -> str:
        """The end of the way that the mean is near, or ""."""
        if self.share < NEAR:
            return "near random"
        return "near good" if self.share > 1.0 - NEAR else ""


def levels(claim: StoredClaim, comparison: dict[str, Any]) -> list[Level]:
    """Return the outcomes of the two groups of a comparison on one task."""
    low, high = way(claim, comparison)
    found = []
    for side in ("a", "b"):
        outcomes = [pair[side] for pair in comparison["pairs"]]
        mean = statistics.fmean(outcomes)
        found.append(Level(comparison[side], mean, statistics.stdev(outcomes), (mean - low) / (high - low)))
    return found


def way(claim: StoredClaim, comparison: dict[str, Any]) -> tuple[float, float]:
    """Return the outcomes of random actions and of a good policy, of whose distance the margin is a tenth."""
    on_task = str(comparison.get("task", ""))  # "": the claim has only one
    for low, high, name in _WAY.findall(claim.settings["claim"]["margin_reason"]):
        if not on_task or name.lower() in on_task.lower():
            return float(low), float(high)
    raise KeyError(f"{claim.name}: no distance for {on_task} in margin_reason")


def spreads(claim: StoredClaim, judged: Judged) -> Iterator[float]:
    """Yield, for each task, the larger standard deviation of the two groups divided by the smaller one."""
    for comparison in judged.on_tasks or [judged.own]:
        first_level, second_level = levels(claim, comparison)
        low, high = sorted((first_level.sd, second_level.sd))
        yield high / low if low else float("inf")
