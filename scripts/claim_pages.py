"""The page that lists the claims of a registry, with what is beside it, for scripts/claims page."""

from __future__ import annotations

from collections import Counter
from typing import Any

from claim_answers import Judged, answer_to, shown, spreads
from claim_details import write_details
from claim_picture import write_picture
from claim_registry import Registry, StoredClaim

BEGIN = "<!-- claims -->\n"
END = "<!-- /claims -->"
UNEQUAL = 2.0  # the larger SD of two groups divided by the smaller one


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
            f"[{sentence}]({claim.name}/README.md)",
            f"**{answer_to(claim, result['conditions'], judged)}**{shown(claim, result['conditions'], judged)}",
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
    ratios: list[float] = []
    for claim in registry.claims:
        judged = Judged.stored(claim)
        result = claim.stored("result.json")
        if judged is None or result is None:
            counts["not run"] += 1
        else:
            counts[answer_to(claim, result["conditions"], judged)] += 1
            core_minutes += result["core_minutes"]
            ratios += spreads(claim, judged)
    answers = ", ".join(f"{answer}: {count}" for answer, count in counts.most_common())
    unequal = sum(ratio > UNEQUAL for ratio in ratios)
    return (
        f"{len(registry.claims)} claims ({answers}), {core_minutes / 60.0:.1f} core hours. "
        f"On {unequal} of {len(ratios)} tasks the SD of one group is more than twice that of the other."
    )


def write_page(registry: Registry) -> None:
    """Write the table and the totals into the page, the picture beside it, and a page for each claim."""
    head, _, rest = registry.page.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    lines = "\n".join([*table(registry), "", totals(registry)])
    registry.page.write_text(f"{head}{BEGIN}{lines}\n{END}{tail}", encoding="utf-8")
    write_picture(registry, registry.picture)
    for claim in registry.claims:
        write_details(registry, claim)
