"""What a plan says about kept runs: how many are reused, what that saves, and which are not reused and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from esper_ab.contracts.wording import counted, listed
from esper_ab.journal.events import RunOffered
from esper_ab.kept_runs.offers import Offers
from esper_ab.plan.estimate import duration

_DAY = slice(10)  # of a time in ISO 8601


def in_plan(offers: Offers) -> tuple[str, ...]:
    """Return the lines of a plan."""
    lines = list(_reused(offers))
    if not lines and offers.opened.groups:
        lines.append(f"No kept run fits this plan; its runs are kept in {offers.opened.folder}.")
    return (*lines, *offers.opened.refused)


def as_json(offers: Offers) -> dict[str, Any]:
    """Return the same for programs."""
    return {
        "folder": offers.opened.folder,
        "reused": {group: len(runs) for group in offers.groups if (runs := offers.reusable(group))},
        "trained_again": [run.run_name for run in offers.runs if run.check],
        "saved_s": offers.saved_s,
        "refused": list(offers.opened.refused),
    }


def trained_on(runs: Sequence[RunOffered]) -> str:
    """Return the days on which runs were trained: "2026-11-23", "2026-11-20 to 2026-11-23"."""
    days = sorted({run.trained_at[_DAY] for run in runs})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _reused(offers: Offers) -> Iterator[str]:
    runs_by_group = {group: offers.reusable(group) for group in offers.groups}
    parts = [
        f"{counted(len(runs), 'run')} of {group} (trained {trained_on(runs)})"
        for group, runs in runs_by_group.items()
        if runs
    ]
    if not parts:
        return
    checks = [run.run_name for run in offers.runs if run.check]
    condition = ""
    if checks:
        condition = f", if {listed(checks)}, trained again, {'gives' if len(checks) == 1 else 'give'} the same numbers"
    yield f"Reuses {listed(parts)}{condition}. Saves {duration(offers.saved_s)}."
