"""The pages that list the claims of a registry, for scripts/claims page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from claim_registry import Registry, StoredClaim

from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import Verdict

BEGIN = "<!-- claims -->\n"
END = "<!-- /claims -->"
IN_MARGINS = ("estimate", "low", "high")
NO_DIFFERENCE = (Verdict.EQUIVALENT, Verdict.IDENTICAL)


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
            names = [(comparison["task"].removeprefix("gym:"), comparison) for comparison in self.on_tasks]
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


def row(claim: StoredClaim, source_says: str) -> str:
    """Return the line of a claim in the table."""
    sentence = claim.settings["claim"]["sentence"]
    sealed = claim.stored("seal.json")
    sealed_on = sealed["sealed"][:10] if sealed else ""
    judged = Judged.stored(claim)
    result = claim.stored("result.json")
    if judged is None or result is None:
        cells = [
            f"[{sentence}]({claim.name}/claim.toml)",
            "sealed, not run" if sealed else "not sealed",
            "",
            "",
            "",
            "",
        ]
    else:
        cells = [
            f"[{sentence}]({claim.name}/summary.txt)",
            f"**{answer_to(claim, result['conditions'], judged)}**",
            effect_of(judged.own),
            judged.verdicts,
            str(judged.own["used"]),
            str(result["core_minutes"]),
        ]
    return f"| {' | '.join([*cells, sealed_on, source_says])} |"


def effect_of(comparison: dict[str, Any]) -> str:
    """Return a difference in margins with its interval; "" if there is none."""
    if comparison["low"] is None:
        return ""
    return f"{comparison['estimate']:+.2f} [{comparison['low']:+.2f}, {comparison['high']:+.2f}]"


def table(registry: Registry) -> list[str]:
    """Return the table of all claims of a registry."""
    verdicts = registry.verdicts_header
    corrections = registry.corrections
    return [
        f"| claim | answer | difference, in margins | {verdicts} | seeds | core minutes | sealed | the sources |",
        "|---|---|---|---|---|---|---|---|",
        *(
            row(claim, corrections.get(claim.name, {}).get("source_says", claim.settings["claim"]["source_says"]))
            for claim in registry.claims
        ),
    ]


def totals(registry: Registry) -> str:
    """Return how many claims have each answer, and what all of them cost."""
    counts: Counter[str] = Counter()
    core_minutes = 0.0
    for claim in registry.claims:
        judged = Judged.stored(claim)
        result = claim.stored("result.json")
        if judged is None or result is None:
            counts["not run"] += 1
        else:
            counts[answer_to(claim, result["conditions"], judged)] += 1
            core_minutes += result["core_minutes"]
    answers = ", ".join(f"{answer}: {count}" for answer, count in counts.most_common())
    return f"{len(registry.claims)} claims ({answers}), {core_minutes / 60.0:.1f} core hours."


def write_page(registry: Registry) -> None:
    """Write the table and the totals into the page."""
    head, _, rest = registry.page.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    lines = "\n".join([*table(registry), "", totals(registry)])
    registry.page.write_text(f"{head}{BEGIN}{lines}\n{END}{tail}", encoding="utf-8")
