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
    if state and not state.complete:
        parts.append(f"> **{state.warning}.** {escaped(state.sentence)}")
    parts.append(_markdowns(document.nodes))
    return "\n\n".join(filter(None, parts)) + "\n"


def _markdown(node: Node) -> str:
    match node:
        case Paragraphs():
            return _paragraphs(node)
        case Points():
            return "\n".join(map(_point, node.points))
        case Verdicts():
            return _verdicts(node)
        case Reasons():  # lists have no titles here
            points = node.basis.points + node.remarks.points
            return _markdowns((Points("", points), node.steps))
        case Commands():
            lines = "\n".join(map(visible_line, node.lines))
            return _fold("Reproduce", f"```sh\n{lines}\n```")
        case Table() if node:
            return _table(node)
        case Section():
            inner_text = _markdowns(node.nodes)
            if inner_text:
                return _fold(escaped(node.title), inner_text)
    return ""


def _markdowns(nodes: Iterable[Node]) -> str:
    return "\n\n".join(filter(None, map(_markdown, nodes)))


def _paragraphs(node: Paragraphs) -> str:
    parts = list(map(escaped, node.paragraphs))
    if node.title:
        parts.insert(0, f"**{escaped(node.title)}.**")
    return " ".join(parts)


def _verdicts(node: Verdicts) -> str:
    parts = [*map(_card, node.cards), *map(escaped, node.shared)]
    if node.scope:
        parts.append(f"Scope: {escaped(node.scope)}.")
    return "\n\n".join(parts)


def _fold(title: str, inner_text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{inner_text}\n\n</details>"


def _point(point: Item) -> str:
    text = f"- {escaped(point.sentence)}"
    if point.command:
        text += f"\n\n  ```sh\n  {visible_line(point.command)}\n  ```"
    return text


def _card(card: Card) -> str:
    caveats = "".join(f"\n  - {escaped(caveat)}" for caveat in card.caveats)
    return f"- **{escaped(card.verdict)}** {escaped(card.headline)}{caveats}"


def _table(table: Table) -> str:
    parts = [f"**{escaped(table.title)}**"]
    if table.rows:
        words = min(table.words, len(table.columns))
        alignment = ["---"] * words + ["---:"] * (len(table.columns) - words)
        head = _row(map(escaped, table.columns))
        rows = (_row(map(escaped, row)) for row in table.rows)
        parts.append("\n".join([head, _row(alignment), *rows]))
    if table.text_below:
        parts.append(f"<sub>{escaped(table.text_below)}</sub>")
    return "\n\n".join(parts)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
