"""Tables of growth: the parameters added and their gain, and the modules pruned and fossilised in training."""

from __future__ import annotations

from esper_ab.kinds.growth.worth import gains_per_kparam, kept_share
from esper_ab.report.content import Content
from esper_ab.report.kind import LearningRow, Row, TablesKind
from esper_ab.report.tables.table import number, percent


def _change_row(label: str, name: str) -> LearningRow:
    return (
        f"{label} per host, untrained → last",
        lambda progress: f"{number(progress.first[name])} → {number(progress.last[name])}",
    )


class GrowthTables(TablesKind):
    """Rows on what was grown."""

    note = "Points per 1,000 parameters: above the never-grown host of the same seed (needs a group wait)."
    learning = (_change_row("prunes", "op_prune"), _change_row("fossils", "op_fossilize"))

    def rows(self, content: Content) -> tuple[Row, ...]:
        """Return the rows on added parameters and on seed modules."""
        gains = gains_per_kparam(content.history, content.outcomes)
        return (
            ("parameters added", lambda run: run.measures["params_added"], 0),
            ("points per 1,000 parameters", lambda run: gains[run.run.name], 2),
            ("seed modules fossilised", lambda run: run.measures["fossilized"], 2),
            ("seed modules pruned", lambda run: run.measures["pruned"], 2),
            ("fossilised of fossilised and pruned %", lambda run: percent(kept_share(run)), 1),
        )


KIND = GrowthTables()
