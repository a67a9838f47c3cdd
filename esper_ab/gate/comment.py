"""The answer of a gate as a comment in Markdown, of at most 15 lines; or why there is none."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import EsperError, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.report.markdown import escaped
from esper_ab.stats.text import signed
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.verdict import Verdict

MOST_LINES = 15
_MOST_WARNINGS = 2
_MOST_REASONS = 2  # lines of an error


def comment(document: Mapping[str, Any], comparison: Comparison) -> str:
    """Return the comment: verdict, headline, a table of the numbers, and the warnings that count most."""
    mark = "passed" if document["passed"] else "not passed"
    states = document["states"]
    rows = {
        "base": escaped(states["base"]["words"]),
        "head": escaped(states["head"]["words"]),
        "difference": escaped(_difference(comparison)),
        "pairs": f"{document['pairs']} of at most {document['most_pairs']}",
        "cost": f"{_runs(document)}, {document['seconds'] / 60.0:.1f} of {document['minutes']:g} min",
        "report": f"`{document['report']}`",
    }
    lines = [
        f"### {escaped(comparison.verdict)}: the gate is {mark}",
        "",
        escaped(document["headline"]),
        "",
        f"| claim | {escaped(document['claim'])} |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows.items()),
    ]
    texts = tuple(document["warnings"])
    if document["complaint"] and comparison.verdict == Verdict.IDENTICAL:  # whose headline does not say what fails
        texts = (document["complaint"], *texts)
    warnings = [f"> {escaped(text)}" for text in texts[:_MOST_WARNINGS]]
    if warnings:
        lines += ["", *warnings]
    return "\n".join(lines[:MOST_LINES]) + "\n"


def comment_on_error(error: EsperError, file: Path) -> str:
    """Return the comment of a gate without an answer: the error, and the command that shows it where it can be mended.

    What was refused before anything started is refused by a dry run, too.
    """
    reasons = [f"> {escaped(line)}" for line in str(error).splitlines()[:_MOST_REASONS]]
    words = ["esper-ab", "gate", str(file), *(["--dry-run"] if isinstance(error, UsageError) else [])]
    command = visible_line(shlex.join(words)).replace("`", "'")
    lines = ["### The gate gave no answer", "", *reasons, "", f"To try it locally: `{command}`"]
    return "\n".join(lines) + "\n"


def _runs(document: Mapping[str, Any]) -> str:
    """Count the runs that were trained, and those of earlier experiments that were used again."""
    kept_count = sum(document["reused"].values())
    text = counted(document["runs"] - kept_count, "run")
    if kept_count:
        days = round(document["reused_days"])
        age = f"up to {counted(days, 'day')} old" if days else "less than a day old"
        text += f" and {kept_count} kept ones ({age})"
    return text


def _difference(comparison: Comparison) -> str:
    """Write the difference with its interval and the margin."""
    design = comparison.design
    if comparison.estimate is None:
        return f"unknown; the margin is {design.margin_words}"
    text = design.difference(comparison.estimate)
    low, high = comparison.low, comparison.high
    if low is not None and high is not None:
        digits = design.digits
        text += f" ({comparison.level} {signed(low, digits)} to {signed(high, digits)})"
    return f"{text}; the margin is {design.margin_words}"
