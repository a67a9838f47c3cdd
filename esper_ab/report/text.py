"""Document -> summary.txt and what commands print: plain ASCII-friendly text, no colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from esper_ab.contracts.visible import visible, visible_line
from esper_ab.report.document import (
    Commands,
    Document,
    Item,
    Node,
    Paragraphs,
    Points,
    Reasons,
    Section,
    State,
    Verdicts,
)
from esper_ab.report.tables.table import Table

WIDTH = 80
_WIDEST_WORDS = 48  # wider text in the last column is wrapped
_LEAST_WORDS = 24  # characters that wrapped text needs beside the columns before it


def render_text(document: Document, *, whole: bool = False) -> str:
    """Render a document, ending in a newline; unless `whole`, only one screen, with one next step but no sections."""
    heading = document.question or document.title
    rest = f"The rest: {visible_line(document.rest)}\n" if document.rest and not whole else ""
    parts = (heading and paragraph(heading, ""), *warned(document.state), _joined(document.nodes, whole))
    return visible("\n\n".join(filter(None, parts))) + f"\n{rest}"


def warned(state: State | None) -> list[str]:
    """Return the warning about an incomplete report as a paragraph."""
    if state is None or state.complete:
        return []
    return [paragraph(f"{state.warning}. {state.sentence}", "")]


def written(node: Node, *, whole: bool = True) -> str:
    """Write a node; "" for a node that a terminal does not show."""
    match node:
        case Paragraphs():
            return _block(node)
        case Points():
            return _points(node)
        case Verdicts():
            return _verdicts(node)
        case Reasons(basis, remarks, steps):
            if whole:
                return _joined((basis, remarks, steps))
            said = Points("", basis.points + remarks.points[:1])
            return "\n".join((_points(said), *map(next_step, steps.points[:1])))
        case Commands():
            return "\n".join(("Commands that repeat the experiment", *(f"  {visible_line(one)}" for one in node.lines)))
        case Table():
            return render_table(node) if node else ""
        case Section():
            return _joined(node.nodes) if whole else ""
    return ""


def _joined(nodes: Iterable[Node], whole: bool = True) -> str:
    return "\n\n".join(filter(None, (written(node, whole=whole) for node in nodes)))


def next_step(step: Item) -> str:
    """Write a next step, with its command on a line of its own."""
    command = f"\n  {visible_line(step.command)}" if step.command else ""
    return f"{paragraph(f'next: {step.sentence}', '', hanging='  ')}{command}"


def _block(node: Paragraphs) -> str:
    title = [node.title.upper()] if node.title and node.paragraphs else []
    mark = "! " * (node.look == "caveat")
    indent = "  " * bool(node.title)
    hanging = "  " * bool(node.look)
    return "\n".join((*title, *(paragraph(f"{mark}{text}", indent, hanging) for text in node.paragraphs)))


def _points(node: Points) -> str:
    lines = [node.title if node.card else node.title.upper()] if node.points and node.title else []
    for point in node.points:
        lines.append(paragraph(f"- {point.sentence}", "", hanging="  "))
        lines += [f"    {visible_line(point.command)}"] if point.command else []
    return "\n".join(lines)


def _verdicts(node: Verdicts) -> str:
    lines = [node.where] if node.where else []
    for card in node.cards:
        lines.append(paragraph(f"{card.verdict}: {card.headline}", "", hanging="  "))
        lines += map(_caveat, card.caveats)
    lines += map(_caveat, node.shared)
    return "\n".join((*lines, *([paragraph(f"Scope: {node.scope}.", "", hanging="  ")] if node.scope else [])))


def _caveat(text: str) -> str:
    return paragraph(f"! {text}", "", hanging="  ")


def paragraph(text: str, indent: str = "  ", hanging: str = "") -> str:
    """Wrap text, without breaking a name longer than a line."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_table(table: Table) -> str:
    """Pad columns to their widest cell, text on the left and numbers on the right; text in the last column wraps.

    A table that does not fit into WIDTH characters becomes a paragraph per row.
    """
    rows = [tuple(map(visible_line, row)) for row in table.rows]
    lines = [tuple(map(visible_line, table.columns)), *rows] if any(table.columns) else rows
    wraps = table.words >= len(table.columns) > 1
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(len(table.columns))]
    text = [paragraph(table.title, "", hanging="  ")]
    least = _LEAST_WORDS if wraps and widths[-1] > _WIDEST_WORDS else sum(widths[-1:])
    if table.rows and sum(widths[:-1]) + 2 * len(widths) + least > WIDTH and len(widths) > 2:
        text += [_row_by_itself(table, row) for row in rows]
        lines = []
    for line in lines if table.rows else ():
        cells = [
            cell.ljust(width) if i < table.words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        if wraps and widths[-1] > _WIDEST_WORDS:
            text.append(_wrapped("  " + "  ".join(cells[:-1]) + "  ", line[-1]))
        else:
            text.append("  " + "  ".join(cells).rstrip())
    if table.said:
        text.append(paragraph(table.said))
    return "\n".join(text)


def _row_by_itself(table: Table, row: tuple[str, ...]) -> str:
    """Write one row as a paragraph: its first cell, then every other cell after the name of its column."""
    named = (f"{visible_line(name)}: {cell}" if name else cell for name, cell in zip(table.columns, row, strict=True))
    first, *others = named
    return paragraph(f"{first.partition(': ')[2] or first}; {'; '.join(others)}", "  ", hanging="  ")


def _wrapped(before: str, words: str) -> str:
    """Wrap the last cell of a row in its column, or below the row if too little room is left."""
    room = WIDTH - len(before)
    if room < _LEAST_WORDS:
        return f"{before.rstrip()}\n{paragraph(words, '      ')}"
    first, *rest = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join([f"{before}{first}".rstrip(), *(" " * len(before) + line for line in rest)])
