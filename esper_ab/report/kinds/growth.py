"""Tables of growth: what was grown and what it was worth, prunes and fossils in training, the screening."""

from __future__ import annotations

from esper_ab.analysis.kinds.growth import gains_per_kparam, kept_share
from esper_ab.analysis.learning import Learning
from esper_ab.report.content import Content
from esper_ab.report.kinds import LearningRow, Row, TableKind
from esper_ab.report.tables.table import NONE, Table, number, percent, yes


def _rows(content: Content) -> tuple[Row, ...]:
    gains = gains_per_kparam(content.history, content.outcomes)
    return (
        ("parameters added", lambda run: run.measures["params_added"], 0),
        ("points per 1,000 parameters", lambda run: gains[run.run.name], 2),
        ("seed modules fossilised", lambda run: run.measures["fossilized"], 2),
        ("seed modules pruned", lambda run: run.measures["pruned"], 2),
        ("fossilised of fossilised and pruned %", lambda run: percent(kept_share(run)), 1),
    )


def _over_training(label: str, name: str) -> LearningRow:
    def change(one: Learning) -> str:
        return f"{number(one.first[name])} → {number(one.last[name])}"

    return f"{label} per host, untrained → last", change


def _judgement(content: Content) -> tuple[Table, ...]:
    screening = content.analysis.screening
    if screening is None:
        return ()
    decisions = Table(  # continue, revise or stop
        f"Screening: is the reward worth going on with? Against {screening.control}",
        columns=("group", "decision", "reason"),
        rows=tuple((item.group, item.decision.upper(), item.reason) for item in screening.judgements), words=3,
    )
    return (decisions,)


def _criteria(content: Content) -> tuple[Table, ...]:
    """Build the criteria of every learning group; nothing without a screening or such a group."""
    screening = content.analysis.screening
    if screening is None or not screening.judgements:
        return ()
    rows = tuple(
        (
            judgement.group, criterion.name, yes(criterion.passed), _change(criterion.mean),
            NONE if criterion.low is None else f"{_change(criterion.low)} to {_change(criterion.high)}",
            str(criterion.runs),
        )
        for judgement in screening.judgements
        for criterion in judgement.criteria
    )
    asked = "; ".join(f"{item.name}: {item.question.removesuffix('?')}" for item in screening.judgements[0].criteria)
    criteria = Table(
        "Criteria of the screening", ("group", "criterion", "passed", "mean", "interval", "n"), rows,
        note=f"Asked: {asked}. The first is the comparison of the plan, with its error rate. The others are paired "
        "95 % t intervals that share no error rate: they can send a reward back, never pass one.",
        words=3,
    )
    return (criteria,)


def _change(value: float | None) -> str:
    return NONE if value is None else f"{value:+,.2f}"


KIND = TableKind(
    rows=_rows, judgement=_judgement, training=_criteria,
    note="Points per 1,000 parameters: above the never-grown host of the same seed (needs a group wait).",
    learning=(_over_training("prunes", "op_prune"), _over_training("fossils", "op_fossilize")),
)
