"""Content -> report.html: one page, nothing fetched from anywhere, every name escaped.

Its policy allows one script, that of this room, by its hash; the page reads the same without it.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from esper_ab.contracts.visible import visible, visible_line
from esper_ab.report.answer import basis, next_steps, question, reproduction
from esper_ab.report.content import Content
from esper_ab.report.figures.catalogue import drawn
from esper_ab.report.figures.drawing import Drawing
from esper_ab.report.figures.style import MOST_COLOURS
from esper_ab.report.sections import Section, rule_sentence, sections
from esper_ab.report.terms import Explained
from esper_ab.report.verdicts import shared_caveats, verdicts

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
