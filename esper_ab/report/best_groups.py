"""The part of a report on many groups: which may be the best, then the verdicts of all pairs as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from esper_ab.report.document import Card, Node, Paragraphs, Verdicts
from esper_ab.report.tables.comparison import cards_of
from esper_ab.report.tables.table import NONE, Table, number, signed
from esper_ab.stats.text import percent
from esper_ab.verdict.best_groups import BestGroups, GroupStanding
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.sentences import span
from esper_ab.verdict.verdict import CLAIMS

_MOST_ROWS = 15  # pairs in a table on one screen


def best_verdict(best_set: BestGroups, compared_items: Sequence[Comparison], mark: str, place: str) -> Verdicts:
    """Return the headline; `compared_items` are the comparisons in the task of `best_set`."""
    card = Card(f"{mark}BEST OF {len(best_set.groups)}", best_set.headline, best_set.caveats)
    return Verdicts((card,), compared_items[0].question.scope, where=place)


def standings_table(best_set: BestGroups, compared_items: Sequence[Comparison]) -> Table:
    """Build the table of all groups, the best mean first."""
    design = compared_items[0].design
    rows = tuple(_standing(group_standing, design.digits) for group_standing in best_set.groups)
    return Table(
        "Which group is the best",
        ("group", "may be the best", "mean", "behind, at most"),
        rows,
        words=2,
        note=(
            f"All at once with {percent(best_set.confidence)} confidence: the best group is among those marked yes, "
            "and no "
            "group is further behind the best than in the last column."
        ),
    )


def _standing(group_standing: GroupStanding, digits: int) -> tuple[str, ...]:
    return (
        group_standing.group,
        "yes" if group_standing.may_be_best else "no",
        number(group_standing.mean, digits),
        number(group_standing.behind, digits),
    )


def pairs_of(compared_items: Sequence[Comparison], mark: str, place: str) -> list[Node]:
    """Return the verdicts of all pairs in one task as a short table, and the caveats on them."""
    rows = list(compared_items)
    note = ""
    if len(rows) > _MOST_ROWS:
        claims = [item for item in compared_items if item.verdict in CLAIMS]
        rows = claims[:_MOST_ROWS]
        note = f"Of {len(compared_items)} pairs {len(claims)} are decided"
        note += f", of which these are the first {len(rows)}." if len(claims) > len(rows) else "."
        note += " All pairs: -v."
    title = f"Pairs ({place})" if place else "Pairs"
    table = Table(
        title, ("pair", "verdict", "effect", "interval"), tuple(map(_row, rows)), words=2, note=note, none=note
    )
    _, caveats = cards_of(compared_items, mark)
    return [table, Paragraphs(caveats, look="caveat")]


def _row(item: Comparison) -> tuple[str, ...]:
    interval = NONE
    if item.low is not None and item.high is not None:
        interval = span(item.low, item.high, item.design)
    question = item.question
    return f"{question.a} - {question.b}", str(item.verdict), signed(item.estimate, item.design.digits), interval


def best_json(best_set: BestGroups) -> dict[str, Any]:
    """Return the JSON object; its keys are in docs/other-numbers.md."""
    return {"among": best_set.among, **msgspec.structs.asdict(best_set)}
