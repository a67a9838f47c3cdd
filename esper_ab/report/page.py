"""Content -> report.html: one page, nothing fetched from anywhere, no script, every name escaped."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from esper_ab.contracts.visible import visible, visible_line
from esper_ab.report import figures_curves, figures_effects, figures_growth, figures_outcome, figures_plan, style
from esper_ab.report.content import Content
from esper_ab.report.drawing import Drawing
from esper_ab.report.sections import own_caveats, rule_sentence, sections, shared_caveats
from esper_ab.report.tables_trust import reproduction

_FIGURES: dict[str, tuple[Callable[[Content], Drawing | None], ...]] = {  # by section
    "outcome": (figures_effects.effects, figures_outcome.endpoints, figures_outcome.pairs, figures_outcome.cost),
    "training": (
        figures_curves.accuracy,
        figures_curves.entropy,
        figures_curves.actions,
        figures_curves.heads,
        figures_growth.lifecycle,
    ),
    "trust": (figures_plan.layout,),
}


def render_page(content: Content) -> str:
    """The whole page; the same text for the same journal."""
    listed = sections(content)
    with style.look():
        figures = {section.key: _drawn(section.key, content) for section in listed}
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True, finalize=_shown)
    environment.filters["markup"] = Markup  # for markup of our own making only: figures and the style sheet
    return environment.from_string(_read("report.html.jinja")).render(
        content=content,
        verdicts=[(item, own_caveats(content, item)) for item in content.comparisons],
        shared_caveats=shared_caveats(content),
        plan=content.history.plan,
        css=_read("report.css"),
        sections=[section for section in listed if section.tables or figures[section.key]],
        figures=figures,
        rule=rule_sentence(content),
        commands="\n".join(map(visible_line, reproduction(content.history))),
    )


def _shown(value: object) -> object:
    """What the page says in words; of text that would turn the direction of writing, the escape."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _drawn(key: str, content: Content) -> list[Drawing]:
    found = (draw(content) for draw in _FIGURES.get(key, ()))
    return [figure for figure in found if figure is not None]


def _read(name: str) -> str:
    return resources.files("esper_ab.report").joinpath(name).read_text(encoding="utf-8")
