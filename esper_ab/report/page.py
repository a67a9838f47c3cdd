"""Document -> report.html: one page, nothing fetched from anywhere, every name escaped.

The page's policy allows at most one script, page.js, by hash; the page reads the same without the script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from esper_ab.contracts.visible import visible, visible_line
from esper_ab.report.document import Document, Figures, Node, Section
from esper_ab.report.figures.style import MOST_COLOURS
from esper_ab.report.tables.table import Table
from esper_ab.report.terms import Explained


def render_page(document: Document) -> str:
    """Render a document; the same journal gives the same text."""
    script = read_part("page.js") if document.interactive else ""
    return fill_template(
        "page.html.jinja",
        document=document,
        explain=Explained() if document.interactive else str,
        n_colours=MOST_COLOURS,
        script=script,
        script_hash=policy_hash(script),
    )


def policy_hash(script: str) -> str:
    """Return the hash by which a Content-Security-Policy names an inlined script."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _holds(section: Section) -> str:
    """Describe a section for the table of contents: the titles of its figures and tables."""
    figures = []
    tables = []
    for node in section.nodes:
        if isinstance(node, Figures):
            figures += [inner_drawing.title for inner_drawing in node.drawings]
        elif isinstance(node, Table) and node:
            tables.append(node.title)
    return ", ".join(figures + tables)


def _sections(nodes: Sequence[Node]) -> list[Section]:
    """Return the sections that the table of contents lists."""
    return [node for node in nodes if isinstance(node, Section) and node.title and _holds(node)]


def fill_template(name: str, **values: object) -> str:
    """Render a template of this package, with the style sheet as `css`."""
    return _environment().get_template(name).render(css=read_part("report.css"), **values)


@cache
def _environment() -> Environment:
    """Return what compiles templates, once per process."""
    environment = Environment(
        loader=FunctionLoader(read_part),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    environment.filters.update(
        holds=_holds,
        sections=_sections,
        lines=lambda lines: "\n".join(map(visible_line, lines)),
        markup=Markup,  # only for trusted markup: figures and the style sheet
    )
    return environment


def _shown(value: object) -> object:
    """Escape control and bidirectional characters in strings that are not markup."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def read_part(name: str) -> str:
    """Return the text of a file of this package: a template, a style sheet or a script."""
    return resources.files("esper_ab.report").joinpath(name).read_text(encoding="utf-8")
