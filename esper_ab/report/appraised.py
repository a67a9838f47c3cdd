"""An appraisal of rewards by itself, as text for a terminal and as a page: functions of the appraisal alone."""

from __future__ import annotations

from esper_ab.analysis.appraisal import AppraisalFindings
from esper_ab.contracts.visible import visible
from esper_ab.report.figures.appraisal import drawings
from esper_ab.report.page import render_template
from esper_ab.report.tables import appraisal as appraisal_tables
from esper_ab.report.tables.table import listed
from esper_ab.report.text import paragraph, render_table


def render_appraisal_text(found: AppraisalFindings) -> str:
    """Render sentences and tables for a terminal, ending in a newline."""
    title = _title(found)
    said = "\n".join(paragraph(sentence, "", hanging="  ") for sentence in appraisal_tables.sentences(found))
    parts = [f"{title}\n{'=' * len(title)}", said, *map(render_table, appraisal_tables.tables(found))]
    return visible("\n\n".join(parts)) + "\n"


def render_appraisal_page(found: AppraisalFindings) -> str:
    """Render the page; the same text for the same appraisal."""
    return render_template(
        "appraisal.html.jinja", title=_title(found), sentences=appraisal_tables.sentences(found),
        drawings=drawings(found), tables=appraisal_tables.tables(found),
        digest=found.appraisal.digest,
    )


def _title(found: AppraisalFindings) -> str:
    return f"{listed([reward.name for reward in found.rewards])} on {found.appraisal.question.task}"
