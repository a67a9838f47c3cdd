"""docs/evidence/reward-audit.md: its numbers are those that the command printed, which is kept in examples."""

from __future__ import annotations

import re
from pathlib import Path

from esper_ab.contracts import catalog

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"(?<![\w.])(?:\d[\d,]*)?\.?\d+(?![\w])")


def numbers(text: str) -> set[str]:
    return {found.replace(",", "") for found in NUMBER.findall(text)}


def test_every_number_of_the_page_was_printed() -> None:
    page = (DOCS / "evidence" / "reward-audit.md").read_text()
    printed = [float(one) for one in numbers((DOCS / "examples" / "reward-audit.txt").read_text())]
    told = numbers(page.split("```")[-1])
    assert len(told) > 60
    unknown = [
        one for one in told
        if not any(abs(value - float(one)) <= 0.5001 * 10 ** -len(one.partition(".")[2]) for value in printed)
    ]  # fmt: skip
    assert unknown == []


def test_what_was_printed_is_of_every_mode() -> None:
    title = (DOCS / "examples" / "reward-audit.txt").read_text().splitlines()[0]
    assert set(re.findall(r"\w+", title)) >= set(catalog.names("workers.rewards"))
