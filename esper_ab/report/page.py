"""Pages: a report, a reward audit, a list of experiments. Nothing is fetched, and every name is escaped."""

from __future__ import annotations

import base64
import hashlib
import os
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from esper_ab.analysis.reward_audit import RewardAuditFindings
from esper_ab.contracts.experiment_files import PAGE
from esper_ab.contracts.files import write_below
from esper_ab.contracts.wording import visible, visible_line
from esper_ab.readers.status import Listed, list_runs
from esper_ab.report.answer import basis, next_steps, question, reproduction
from esper_ab.report.content import Content
from esper_ab.report.figures.catalogue import drawn
from esper_ab.report.figures.reward_audit import drawings
from esper_ab.report.figures.style import MOST_COLOURS, Drawing
from esper_ab.report.sections import Explained, Section, rule_sentence, sections, shared_caveats, verdicts
from esper_ab.report.tables import reward_audit as reward_audit_tables
from esper_ab.report.tables.table import listed
from esper_ab.report.text import paragraph, render_table

# --- page ------------------------------------------------------------------------------------------------------------
# Content -> report.html: one page, nothing fetched from anywhere, every name escaped.
#
# Its policy allows one script, that of this room, by its hash; the page reads the same without it.


_MAIN_FIGURE = "effects"  # the one that shows the answer


def render_page(content: Content) -> str:
    """Render the whole page; the same text for the same journal."""
    listed = sections(content)
    figures = {section.key: drawn(section.key, content) for section in listed}
    first = [drawing for drawing in figures["outcome"] if drawing.name == _MAIN_FIGURE]
    figures["outcome"] = [drawing for drawing in figures["outcome"] if drawing not in first]
    script = read_part("page.js")
    return render_template(
        "report.html.jinja", content=content, verdicts=verdicts(content), shared_caveats=shared_caveats(content),
        plan=content.history.plan,
        sections=[section for section in listed if section.tables or figures[section.key]],
        figures=figures, main_figures=first, rule=rule_sentence(content), question=question(content),
        basis=basis(content), remarks=content.analysis.remarks, steps=next_steps(content), explain=Explained(),
        n_colours=MOST_COLOURS, commands="\n".join(map(visible_line, reproduction(content))),
        script=script, script_hash=policy_hash(script),
    )


def policy_hash(script: str) -> str:
    """Return what a Content-Security-Policy names an inlined script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _holds(section: Section, drawings: list[Drawing]) -> str:
    """Say what is in a section, for the contents: the titles of its figures and tables."""
    return ", ".join([*(one.title for one in drawings), *(one.title for one in section.tables)])


def render_template(name: str, **values: object) -> str:
    """Render a template of this room, with the style sheet as `css`."""
    environment = Environment(
        loader=FunctionLoader(read_part), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True,
        finalize=_shown,
    )  # fmt: skip
    environment.filters["holds"] = _holds
    environment.filters["markup"] = Markup  # only for trusted markup: figures and the style sheet
    return environment.get_template(name).render(css=read_part("report.css"), **values)


def _shown(value: object) -> object:
    """Escape control and bidirectional characters of strings that are not markup."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def read_part(name: str) -> str:
    """Return the text of a file of this room: a template, a style sheet, a script."""
    return resources.files("esper_ab.report").joinpath(name).read_text(encoding="utf-8")


# --- listing ---------------------------------------------------------------------------------------------------------
# A static page over all experiment directories below a folder: state, progress, answer, and links to their reports.


def write_listing(folder: Path, page: Path, *, refresh_s: int = 0) -> None:
    """Replace the file `page`, atomically; with `refresh_s` a browser loads it again after so many seconds."""
    text = render_template(
        "listing.html.jinja", folder=str(folder if folder.name else folder.resolve().name), refresh_s=refresh_s,
        rows=[(one, os.path.relpath(one.experiment_dir, folder), _report(one, page)) for one in list_runs(folder)],
        written=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
    )  # fmt: skip
    write_below(page.parent, page.name, text.encode())


def _report(one: Listed, page: Path) -> str:
    """Return the address of an experiment's report, seen from `page`; "" while there is none."""
    report = Path(one.experiment_dir) / PAGE
    return quote(os.path.relpath(report, page.parent)) if report.is_file() else ""


# --- audited rewards -------------------------------------------------------------------------------------------------
# A reward audit by itself, as text for a terminal and as a page: functions of the reward audit alone.


def render_reward_audit_text(found: RewardAuditFindings) -> str:
    """Render sentences and tables for a terminal, ending in a newline."""
    title = _title(found)
    said = "\n".join(paragraph(sentence, "", hanging="  ") for sentence in reward_audit_tables.sentences(found))
    parts = [f"{title}\n{'=' * len(title)}", said, *map(render_table, reward_audit_tables.tables(found))]
    return visible("\n\n".join(parts)) + "\n"


def render_reward_audit_page(found: RewardAuditFindings) -> str:
    """Render the page; the same text for the same reward_audit."""
    return render_template(
        "reward_audit.html.jinja", title=_title(found), sentences=reward_audit_tables.sentences(found),
        drawings=drawings(found), tables=reward_audit_tables.tables(found),
        digest=found.reward_audit.digest,
    )


def _title(found: RewardAuditFindings) -> str:
    return f"{listed([reward.name for reward in found.rewards])} on {found.reward_audit.question.task}"
