"""A row on arms in the reports of bandits."""

from __future__ import annotations

from esper_ab.report.content import Content
from esper_ab.report.kind import Row, TablesKind


class BanditTables(TablesKind):
    """A row on the best arm instead of the declared measures."""

    harder = "a bandit with more arms"

    def rows(self, content: Content) -> tuple[Row, ...]:
        """Return the row."""
        return (("pulls of the best arm %", lambda run: run.measures["best_arm"], 1),)


KIND = BanditTables()
