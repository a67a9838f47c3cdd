"""Content -> report.html: one page, nothing fetched from anywhere, no script, every name escaped."""

from __future__ import annotations

from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from esper_ab.contracts.visible import visible, visible_line
from esper_ab.report.content import Content
from esper_ab.report.figures.catalogue import drawn
from esper_ab.report.sections import rule_sentence, sections
from esper_ab.report.tables.trust import reproduction
from esper_ab.report.verdicts import shared_caveats, verdicts


def render_page(content: Content) -> str:
    """Render the whole page; the same text for the same journal."""
    listed = sections(content)
    figures = {section.key: drawn(section.key, content) for section in listed}
    return render_template(
        "report.html.jinja", content=content, verdicts=verdicts(content), shared_caveats=shared_caveats(content),
        plan=content.history.plan,
        sections=[section for section in listed if section.tables or figures[section.key]],
        figures=figures, rule=rule_sentence(content),
        commands="\n".join(map(visible_line, reproduction(content.history))),
    )


def render_template(name: str, **values: object) -> str:
    """Render a template of this room, with the style sheet as `css`."""
    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True,
        finalize=_shown,
    )  # fmt: skip
    environment.filters["markup"] = Markup  # only for trusted markup: figures and the style sheet
    return environment.get_template(name).render(css=_read("report.css"), **values)


def _shown(value: object) -> object:
    """Escape control and bidirectional characters of strings that are not markup."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(name: str) -> str:
    return resources.files("esper_ab.report").joinpath(name).read_text(encoding="utf-8")
