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
        for group_reward in own_rewards(content.history):
            outcome = _change(group_reward.outcome, content.design.digits)
            rows.append(
                (
                    group_reward.group,
                    _change(group_reward.reward),
                    f"{group_reward.rose} of {group_reward.runs} runs",
                    outcome,
                )
            )
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
    first_value, last_value = ends
    if first_value is None or last_value is None:
        return NONE
    return f"{number(first_value, digits)} → {number(last_value, digits)}"


KIND = GymnasiumTables()
