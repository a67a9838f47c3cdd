"""Content -> report.html: one page, nothing fetched from anywhere, every name escaped."""

from __future__ import annotations

from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from esper_ab.report import figures_outcome, figures_training, style
from esper_ab.report.content import Content
from esper_ab.report.drawing import Drawing
from esper_ab.report.tables import (
    cross_table,
    differences_table,
    facts_table,
    groups_table,
    layout_table,
    ledger_table,
    pairs_table,
    ppo_table,
    statistics_table,
)
from esper_ab.stats.sign_flip import smallest_p_sentence


def render_page(content: Content) -> str:
    """The whole page; the same text for the same journal."""
    plan = content.history.plan
    statistics = [
        table(item) for item in content.comparisons if item.pairs for table in (statistics_table, pairs_table)
    ]
    groups = (groups_table(content), differences_table(content), cross_table(content))
    trust = (
        ledger_table(content.history),
        layout_table(content),
        ppo_table(content),
        facts_table(content.history),
    )
    with style.look():
        outcome = [figures_outcome.effects(content), figures_outcome.pairs(content), figures_outcome.cost(content)]
        training = [
            figures_training.accuracy(content),
            figures_training.entropy(content),
            figures_training.seeds(content),
        ]
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["markup"] = Markup  # for markup of our own making only: figures and the style sheet
    return environment.from_string(_read("report.html.jinja")).render(
        content=content,
        plan=plan,
        css=_read("report.css"),
        outcome_figures=_drawn(outcome),
        training_figures=_drawn(training),
        group_tables=[table for table in groups if table.rows or table.note],
        statistics_tables=statistics,
        trust_tables=[table for table in trust if table.rows or table.note],
        rule=f"{content.comparisons[0].rule} {smallest_p_sentence(plan.experiment.replicates)}",
    )


def _drawn(figures: list[Drawing | None]) -> list[Drawing]:
    return [figure for figure in figures if figure is not None]


def _read(name: str) -> str:
    return resources.files("esper_ab.report").joinpath(name).read_text(encoding="utf-8")
