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


def render_text(document: Document, *, in_full: bool = False) -> str:
    """Render a document, ending in a newline; unless `in_full`, only one screen, with one next step but no sections."""
    parts = []
    heading = document.question or document.title
    if heading:
        parts.append(paragraph(heading, ""))
    parts += warned(document.state)
    parts.append(_joined(document.nodes, in_full))
    text = visible("\n\n".join(filter(None, parts))) + "\n"
    if document.rest and not in_full:
        text += f"The rest: {visible_line(document.rest)}\n"
    return text


def warned(state: State | None) -> list[str]:
    """Return the warning about an incomplete report as a paragraph."""
    if state is None or state.complete:
        return []
    return [paragraph(f"{state.warning}. {state.sentence}", "")]


def written(node: Node, *, in_full: bool = True) -> str:
    """Write a node; "" for a node that a terminal does not show."""
    match node:
        case Paragraphs():
            return _block(node)
        case Points():
            return _points(node)
        case Verdicts():
            return _verdicts(node)
        case Reasons(basis, remarks, steps):
            if in_full:
                return _joined((basis, remarks, steps))
            points = Points("", basis.points + remarks.points[:1])
            first_step = map(next_step, steps.points[:1])
            return "\n".join((_points(points), *first_step))
        case Commands():
            commands = (f"  {visible_line(line)}" for line in node.lines)
            return "\n".join(("Commands that repeat the experiment", *commands))
        case Table() if node:
            return render_table(node)
        case Section() if in_full:
            return _joined(node.nodes)
    return ""


def _joined(nodes: Iterable[Node], in_full: bool = True) -> str:
    texts = (written(node, in_full=in_full) for node in nodes)
    return "\n\n".join(filter(None, texts))


def next_step(step: Item) -> str:
    """Write a next step, with its command on a line of its own."""
    lines = [paragraph(f"next: {step.sentence}", "", hanging_indent="  ")]
    if step.command:
        lines.append(f"  {visible_line(step.command)}")
    return "\n".join(lines)


def _block(node: Paragraphs) -> str:
    mark = "! " if node.look == "caveat" else ""
    indent = "  " if node.title else ""
    hanging_indent = "  " if node.look else ""
    lines = [paragraph(f"{mark}{text}", indent, hanging_indent) for text in node.paragraphs]
    if node.title and lines:
        lines.insert(0, node.title.upper())
    return "\n".join(lines)


def _points(node: Points) -> str:
    lines = []
    if node.points and node.title:
        if node.card:
            lines.append(node.title)
        else:
            lines.append(node.title.upper())
    for point in node.points:
        lines.append(paragraph(f"- {point.sentence}", "", hanging_indent="  "))
        if point.command:
            lines.append(f"    {visible_line(point.command)}")
    return "\n".join(lines)


def _verdicts(node: Verdicts) -> str:
    lines = []
    if node.where:
        lines.append(node.where)
    for card in node.cards:
        lines.append(paragraph(f"{card.verdict}: {card.headline}", "", hanging_indent="  "))
        lines += map(_caveat, card.caveats)
    lines += map(_caveat, node.shared)
    if node.scope:
        lines.append(paragraph(f"Scope: {node.scope}.", "", hanging_indent="  "))
    return "\n".join(lines)


def _caveat(text: str) -> str:
    return paragraph(f"! {text}", "", hanging_indent="  ")


def paragraph(text: str, indent: str = "  ", hanging_indent: str = "") -> str:
    """Wrap text, without breaking a name longer than a line."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hanging_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_table(table: Table) -> str:
    """Pad columns to their widest cell, text on the left and numbers on the right; text in the last column wraps.

    A table that does not fit into WIDTH characters becomes a paragraph per row.
    """
    text = [paragraph(table.title, "", hanging_indent="  ")]
    if table.rows:
        text += _written_rows(table)
    if table.text_below:
        text.append(paragraph(table.text_below))
    return "\n".join(text)


def _written_rows(table: Table) -> list[str]:
    rows = [tuple(map(visible_line, row)) for row in table.rows]
    lines = list(rows)
    if any(table.columns):
        lines.insert(0, tuple(map(visible_line, table.columns)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    wraps = table.words >= len(widths) > 1 and widths[-1] > _WIDEST_WORDS
    least_width = _LEAST_WORDS if wraps else widths[-1]
    needed_width = sum(widths[:-1]) + 2 * len(widths) + least_width
    if needed_width > WIDTH and len(widths) > 2:
        return [_row_by_itself(table, row) for row in rows]
    written_lines = []
    for line in lines:
        cells = _padded(line, widths, table.words)
        if wraps:
            cells_before = "  " + "  ".join(cells[:-1]) + "  "
            written_lines.append(_wrapped(cells_before, line[-1]))
        else:
            written_lines.append("  " + "  ".join(cells).rstrip())
    return written_lines


def _padded(line: tuple[str, ...], widths: list[int], words: int) -> list[str]:
    """Pad each cell to its column's width; the first `words` columns hold text."""
    text = [cell.ljust(width) for cell, width in zip(line[:words], widths[:words], strict=True)]
    numbers = [cell.rjust(width) for cell, width in zip(line[words:], widths[words:], strict=True)]
    return text + numbers


def _row_by_itself(table: Table, row: tuple[str, ...]) -> str:
    """Write one row as a paragraph: its first cell, then every other cell after the name of its column."""
    first_cell, *other_cells = row
    _, *names = table.columns
    named_cells = []
    for name, cell in zip(names, other_cells, strict=True):
        if name:
            named_cells.append(f"{visible_line(name)}: {cell}")
        else:
            named_cells.append(cell)
    return paragraph(f"{first_cell}; {'; '.join(named_cells)}", "  ", hanging_indent="  ")


def _wrapped(cells_before: str, words: str) -> str:
    """Wrap the last cell of a row in its column, or below the row if too little room is left."""
    room = WIDTH - len(cells_before)
    if room < _LEAST_WORDS:
        return f"{cells_before.rstrip()}\n{paragraph(words, '      ')}"
    first_line, *other_lines = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False) or [""]
    indent = " " * len(cells_before)
    lines = [f"{cells_before}{first_line}".rstrip()]
    lines += [indent + line for line in other_lines]
    return "\n".join(lines)
