"""Tables for Gymnasium environments: each group's own reward next to its outcome."""

from __future__ import annotations

from esper_ab.analysis.own_reward import own_rewards
from esper_ab.journal.outcomes import Ends
from esper_ab.report.content import Content
from esper_ab.report.kind import TablesKind
from esper_ab.report.tables.table import NONE, NOT_COMPARABLE, Table, number


class GymnasiumTables(TablesKind):
    """A table on own rewards."""

    harder = "longer episodes (--steps, or gym.episode_steps)"

    def training(self, content: Content) -> tuple[Table, ...]:
        """Return the table of own rewards and outcomes in training."""
        rows = []
        for own in own_rewards(content.history):
            outcome = _change(own.outcome, content.design.digits)
            rows.append((own.group, _change(own.reward), f"{own.rose} of {own.runs} runs", outcome))
        table = Table(
            "Own reward and outcome in training",
            ("group", "own reward", "rose in", content.design.outcome.title),
            tuple(rows),
            note="First and last tenth of the training episodes, means per environment over runs. A group learns from "
            f"its own reward and is compared by the outcome. Rewards are {NOT_COMPARABLE}.",
            wide=False,
        )
        return (table,)


def _change(ends: Ends, digits: int = 1) -> str:
    first, last = ends
    if first is None or last is None:
        return NONE
    return f"{number(first, digits)} → {number(last, digits)}"


KIND = GymnasiumTables()
