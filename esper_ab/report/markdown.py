"""Document -> Markdown for a pull request: the verdict comes first, the rest is folded. Names cannot become markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from esper_ab.contracts.visible import visible_line
from esper_ab.report.document import (
    Card,
    Commands,
    Document,
    Item,
    Node,
    Paragraphs,
    Points,
    Reasons,
    Section,
    Verdicts,
)
from esper_ab.report.tables.table import Table

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")


def escaped(text: str) -> str:
    """Return `text` as one line in which Markdown, GitHub's mentions and HTML find no markup."""
    text = _SPECIAL.sub(r"\\\1", html.escape(visible_line(" ".join(text.split())), quote=False))
    return text.replace("@", "&#64;").replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def render_markdown(document: Document) -> str:
    """Render a document except its figures, ending in a newline."""
    state = document.state
    parts = [f"## {escaped(document.title)}", escaped(document.question)]
    parts += [f"> **{state.warning}.** {escaped(state.sentence)}"] if state and not state.complete else []
    parts.append(_markdowns(document.nodes))
    return "\n\n".join(filter(None, parts)) + "\n"


def _markdown(node: Node) -> str:
    match node:
        case Paragraphs():
            return " ".join((*([f"**{escaped(node.title)}.**"] if node.title else []), *map(escaped, node.paragraphs)))
        case Points():
            return "\n".join(map(_point, node.points))
        case Verdicts():
            scope = (f"Scope: {escaped(node.scope)}.",) if node.scope else ()
            return "\n\n".join((*map(_card, node.cards), *map(escaped, node.shared), *scope))
        case Reasons():  # lists have no titles here
            return _markdowns((Points("", node.basis.points + node.remarks.points), node.steps))
        case Commands():
            return _fold("Reproduce", "```sh\n{}\n```".format("\n".join(map(visible_line, node.lines))))
        case Table():
            return _table(node) if node else ""
        case Section():
            inside = _markdowns(node.nodes)
            return inside and _fold(escaped(node.title), inside)
    return ""


def _markdowns(nodes: Iterable[Node]) -> str:
    return "\n\n".join(filter(None, map(_markdown, nodes)))


def _fold(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"


def _point(point: Item) -> str:
    code = f"\n\n  ```sh\n  {visible_line(point.command)}\n  ```" if point.command else ""
    return f"- {escaped(point.sentence)}{code}"


def _card(card: Card) -> str:
    caveats = "".join(f"\n  - {escaped(caveat)}" for caveat in card.caveats)
    return f"- **{escaped(card.verdict)}** {escaped(card.headline)}{caveats}"


def _table(table: Table) -> str:
    below = ["---" if place < table.words else "---:" for place in range(len(table.columns))]
    head, *rows = (_row(map(escaped, cells)) for cells in (table.columns, *table.rows))
    parts = [f"**{escaped(table.title)}**"]
    if rows:
        parts.append("\n".join([head, _row(below), *rows]))
    if table.said:
        parts.append(f"<sub>{escaped(table.said)}</sub>")
    return "\n\n".join(parts)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
