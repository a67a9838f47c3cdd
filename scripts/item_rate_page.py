"""The tables of docs/evidence/item-rates.md, for scripts/item_rates."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from item_rates import NUMBERS, PAGE

BEGIN = "<!-- tables -->\n"
END = "<!-- /tables -->"
LEAST_RUNS = 6
LEAST_TRAINING_CLUSTERS, LEAST_CHECKPOINT_CLUSTERS = 10.0, 20.0
MOST_MISSED = 6.0  # coverage is at least 94 %


def write() -> None:
    """Write all tables between the marks of the page."""
    text_before, _, text_behind = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    text_after = text_behind.partition(END)[2]
    PAGE.write_text(f"{text_before}{BEGIN}{tables(stored())}\n{END}{text_after}", encoding="utf-8")


def stored() -> dict[str, Any]:
    """Return the stored numbers."""
    return dict(json.loads(NUMBERS.read_text(encoding="utf-8")))


def tables(numbers: dict[str, Any]) -> str:
    """Return all tables, in Markdown."""
    rows = numbers["rows"]
    parts = [*_trainings(rows), *_checkpoints(rows), *_exact(numbers["exact"]), *_exceptions(numbers)]
    return "\n".join(parts)


def claims(numbers: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return what a claim is made with, in words, and its largest rate of false claims."""
    claim_rates = []
    for row in numbers["rows"]:
        if row["runs"] >= LEAST_RUNS and row["effective"] >= LEAST_TRAINING_CLUSTERS:
            claim_rates.append((f"trainings; {row['runs']} runs; {row['items']}", row["trainings"]["false"]))
        if row["effective"] >= LEAST_CHECKPOINT_CLUSTERS:
            claim_rates.append((f"checkpoints; {row['runs']} runs; {row['items']}", row["checkpoints"]["false"]))
    claim_rates += [(f"McNemar; 1 run; {row['items']}", row["false"]) for row in numbers["exact"]]
    return claim_rates


def limit(rate: dict[str, Any]) -> float:
    """Return 5 % and three standard errors, in percent."""
    return 5.0 + 300.0 * math.sqrt(0.05 * 0.95 / rate["experiments"])


def _trainings(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield _paragraph(
        "**New training runs on new items**, the level `trainings`. With three runs there is no claim. Then the misses "
        "with Satterthwaite's degrees of freedom for any number of runs; the false claims about new runs and new items "
        "of tests that let only runs vary (the runs' means), or only items; and the power at a difference of 5 points "
        "in 0/1 scores, with run noise of 1 point, and with 3 points and the interaction.",
        heading="",
    )
    yield from _head(
        [
            "items",
            "clusters",
            "runs",
            "false claims",
            "missed",
            "Satterthwaite",
            "only runs vary",
            "only items vary",
            "power",
            "power",
        ]
    )
    for row in rows:
        if "trainings" not in row:
            continue
        numbers = row["trainings"]
        allowed = row["runs"] >= LEAST_RUNS and row["effective"] >= LEAST_TRAINING_CLUSTERS
        false_percent = f"{numbers['false']['percent']:.1f}" if allowed else "–"
        single_rules = [f"{numbers[name]:.1f}" for name in ("Satterthwaite", "runs alone", "items alone")]
        power = [f"{percent:.0f}" if allowed else "–" for percent in numbers["power"]]
        yield _row(
            [
                row["items"],
                _clusters(row),
                str(row["runs"]),
                false_percent,
                f"{numbers['missed']['percent']:.1f}",
                *single_rules,
                *power,
            ]
        )


def _checkpoints(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield _paragraph(
        "**These checkpoints on new items**, the level `checkpoints`, by runs per group. A claim needs 20 effective "
        'clusters. "Sums": the misses of the formula without the leverage of large clusters.'
    )
    runs = sorted({row["runs"] for row in rows})
    yield from _head(
        ["items", "clusters", *(f"{name}, {count}" for count in runs for name in ("false", "missed")), "sums"]
    )
    for name in dict.fromkeys(row["items"] for row in rows):
        rows_of_items = [row for row in rows if row["items"] == name]
        cells = []
        for row in rows_of_items:
            allowed = row["effective"] >= LEAST_CHECKPOINT_CLUSTERS
            cells.append(f"{row['checkpoints']['false']['percent']:.1f}" if allowed else "–")
            cells.append(f"{row['checkpoints']['missed']['percent']:.1f}")
        sums = [row["checkpoints"]["cluster sums"] for row in rows_of_items if "cluster sums" in row["checkpoints"]]
        yield _row([name, _clusters(rows_of_items[0]), *cells, f"{max(sums):.1f}" if sums else "–"])


def _exact(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield _paragraph(
        "**One run in each group, 0/1 scores, no clusters**: McNemar's exact test over items, and its interval."
    )
    yield from _head(["items", "false claims", "missed"])
    for row in rows:
        yield _row([row["items"], f"{row['false']['percent']:.1f}", f"{row['missed']['percent']:.1f}"])


def _exceptions(numbers: dict[str, Any]) -> Iterable[str]:
    exceptions = [(words, rate) for words, rate in claims(numbers) if rate["percent"] > limit(rate)]
    yield _paragraph(
        f"**Exceptions**: rates of false claims more than three standard errors above 5 % ({len(exceptions)} of the "
        f"{len(claims(numbers))} above)."
    )
    if not exceptions:
        return
    yield from _head(
        ["level; runs; items", "false claims", "experiments", "scores", "run noise", "interaction", "runs"]
    )
    for words, rate in exceptions:
        law = rate["law"]
        yield _row(
            [
                words,
                f"{rate['percent']:.2f}",
                f"{rate['experiments']:,}",
                "0/1" if law["binary"] else "graded",
                f"{law['points']:.0f} points",
                f"{law['interaction']:.1f}",
                "paired" if law["paired"] else "not paired",
            ]
        )


def _clusters(row: dict[str, Any]) -> str:
    return f"{row['effective']:,.1f}".removesuffix(".0")


def _paragraph(text: str, heading: str = "\n") -> str:
    return f"{heading}{textwrap.fill(text, 120)}\n"


def _head(cells: Sequence[str]) -> list[str]:
    return [_row(cells), _row(["---"] * len(cells))]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
