"""The page of one claim, for scripts/claims page: its outcomes by task, its warnings, its source and its seal."""

from __future__ import annotations

import textwrap

from claim_answers import Judged, answer_to, levels, shown, task_name
from claim_registry import Registry, StoredClaim

COMMAND = "esper-ab launch "
WIDTH = 120
FILES = (
    "[question and settings](claim.toml), [plan](plan.txt), [seal](seal.json), [summary](summary.txt), "
    "[all numbers](verdict.json)"
)
TABLE_HEAD = (
    "| task | group | mean | SD | from random to good | verdict on the difference |",
    "|---|---|---|---|---|---|",
)


def write_details(registry: Registry, claim: StoredClaim) -> None:
    """Write the page of a claim, if it has an answer."""
    if claim.stored("result.json") is not None:
        (claim.folder / "README.md").write_text("\n".join(details(registry, claim)) + "\n", encoding="utf-8")


def details(registry: Registry, claim: StoredClaim) -> list[str]:
    """Return the lines of the page of a claim that has an answer."""
    judged = Judged.stored(claim)
    result = claim.stored("result.json")
    sealed = claim.stored("seal.json")
    assert judged is not None
    assert result is not None
    assert sealed is not None
    declared = claim.settings["claim"] | registry.corrections.get(claim.name, {})
    conditions = result["conditions"]
    return [
        f"# {declared['sentence'].removesuffix('.')}",
        "",
        "Written by `scripts/claims page`.",
        "",
        f"Answer: **{answer_to(claim, conditions, judged)}**{shown(claim, conditions, judged)}.",
        "",
        *outcomes(claim, judged),
        "",
        *notes(judged),
        *item(f"**Source**: {declared['source']}."),
        *item(f"**What it says**: {declared['source_says']}."),
        *item(f"**Margin**: {declared['margin_reason']}."),
        *item(
            f"**Sealed** {minute_of(sealed['sealed'])}; trained {minute_of(result['began'])} to "
            f"{minute_of(result['ended'])} (UTC): {result['runs']} runs, {result['core_minutes']} core minutes, "
            f"{result['processor']}, commit {result['commit'][:9]}."
        ),
        *item(f"**Files**: {FILES}."),
        "",
        "```sh",
        repeating(claim),
        "```",
    ]


def outcomes(claim: StoredClaim, judged: Judged) -> list[str]:
    """Return the table of what each group came to on each task."""
    lines = [*TABLE_HEAD]
    for comparison in judged.on_tasks or [judged.own]:
        task = task_name(comparison) if judged.on_tasks else ""
        verdict = str(comparison["verdict"])
        for level in levels(claim, comparison):
            share = f"{100.0 * level.share:.0f} %"
            if level.near:
                share += f", {level.near}"
            lines.append(f"| {task} | {level.group} | {level.mean:.5g} | {level.sd:.3g} | {share} | {verdict} |")
            task, verdict = "", ""
    return lines


def notes(judged: Judged) -> list[str]:
    """Return the headline of each comparison, and the warnings that a quotation needs, each with its comparisons."""
    lines = []
    warned: dict[str, list[str]] = {}
    for comparison in [judged.own, *judged.on_tasks, *judged.others]:
        name = task_name(comparison) if judged.on_tasks else f"{comparison['a']} - {comparison['b']}"
        lines += item(f"**{name}**: {comparison['headline']}")
        for warning in comparison["warnings"]:
            warned.setdefault(warning, []).append(name)
    for warning, names in warned.items():
        lines += item(f"Warning on {', '.join(names)}: {warning}")
    return lines


def item(text: str) -> list[str]:
    """Return the lines of an item of a list."""
    return textwrap.wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


def repeating(claim: StoredClaim) -> str:
    """Return the command that repeats a claim with other randomness, which is in the head of its file."""
    text = claim.file.read_text(encoding="utf-8")
    return next(line[line.index(COMMAND) :] for line in text.splitlines() if COMMAND in line)


def minute_of(time: str) -> str:
    """Return a date and time without its seconds."""
    return time[:16].replace("T", " ")
