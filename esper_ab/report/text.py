"""Content -> summary.txt: the contents of the HTML page for a terminal. Plain ASCII-friendly text, no colour."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from esper_ab.contracts.visible import visible, visible_line
from esper_ab.report.answer import Step, basis, next_steps, question, reproduction
from esper_ab.report.content import Content
from esper_ab.report.sections import rule_sentence, sections
from esper_ab.report.tables.table import Table
from esper_ab.report.verdicts import Said, shared_caveats, verdicts

WIDTH = 80
_WIDEST_WORDS = 48  # wider text in the last column is wrapped
_LEAST_WORDS = 24  # columns that wrapped text needs beside the others


def paragraph(text: str, indent: str = "  ", hanging: str = "") -> str:
    """Wrap text; a name longer than a line is left whole."""
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def render_table(table: Table) -> str:
    """Pad columns to their widest cell: text to the left, numbers to the right; text in the last column wraps.

    A table that does not fit into WIDTH columns becomes a paragraph per row.
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
            before = "  " + "  ".join(cells[:-1]) + "  "
            text.append(_wrapped(before, line[-1]))
        else:
            text.append("  " + "  ".join(cells).rstrip())
    if table.note:
        text.append(paragraph(table.note))
    return "\n".join(text)


def _row_by_itself(table: Table, row: tuple[str, ...]) -> str:
    """Write one row as a paragraph: its first cell, then every other cell behind its column's name."""
    named = (f"{visible_line(name)}: {cell}" if name else cell for name, cell in zip(table.columns, row, strict=True))
    first, *others = named
    return paragraph(f"{first.partition(': ')[2] or first}; {'; '.join(others)}", "  ", hanging="  ")


def _wrapped(before: str, words: str) -> str:
    """Wrap the last cell of a row below itself, or below the row when too little room is left."""
    room = WIDTH - len(before)
    if room < _LEAST_WORDS:
        return f"{before.rstrip()}\n{paragraph(words, '      ')}"
    first, *rest = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join([f"{before}{first}".rstrip(), *(" " * len(before) + line for line in rest)])


def render_text(content: Content) -> str:
    """Render the whole summary, ending in a newline."""
    plan = content.history.plan
    title = f"esper_ab: {content.title}"
    parts = [f"{title}\n{'=' * min(len(title), WIDTH)}", *_incomplete(content)]
    parts.append(f"QUESTION\n{paragraph(question(content))}")
    shared = (_caveat(text, "  ") for text in shared_caveats(content))
    parts.append("\n".join(("VERDICT", *map(_verdict, verdicts(content)), *shared)))
    parts.append(_points("WHAT IT RESTS ON", basis(content)))
    if content.analysis.remarks:
        parts.append(_points("WHAT A READER WOULD ASK", content.analysis.remarks))
    if steps := next_steps(content):
        parts.append("\n".join(("WHAT TO DO NEXT", *map(_step, steps))))
    parts.append(f"EXACTLY\n{paragraph(plan.estimand)}\n{paragraph(rule_sentence(content))}")
    parts += [render_table(table) for section in sections(content) for table in section.tables]
    parts.append("Commands that make the same experiment\n" + "\n".join(
        f"  {visible_line(line)}" for line in reproduction(content)
    ))  # fmt: skip
    if plan.notes:
        parts.append(_points("Notes of the plan", plan.notes))
    if content.state.complete:
        parts.append(paragraph(content.state.sentence, ""))
    return visible("\n\n".join(parts)) + "\n"


def render_brief(content: Content, page: str) -> str:
    """Render what a terminal is left with: question, headlines, the first step, where the report is. No newline."""
    lines = [*_incomplete(content), paragraph(visible_line(question(content)), "", hanging="  ")]
    lines += [paragraph(visible_line(said.headline), "", hanging="  ") for said in verdicts(content)]
    lines.append(f"report: {visible_line(page)}")
    if steps := next_steps(content):
        lines.append(paragraph(f"next: {steps[0].sentence}", "", hanging="  "))
        if steps[0].command:
            lines.append(f"  {visible_line(steps[0].command)}")
    return visible("\n".join(lines))


def _points(title: str, sentences: Sequence[str]) -> str:
    return "\n".join((title, *(paragraph(f"- {sentence}", hanging="  ") for sentence in sentences)))


def _incomplete(content: Content) -> list[str]:
    if content.state.complete:
        return []
    how = "" if content.state.word == "incomplete" else f" ({content.state.word})"
    return [paragraph(f"INCOMPLETE{how}. {content.state.sentence}", "")]


def _step(step: Step) -> str:
    command = f"\n    {visible_line(step.command)}" if step.command else ""
    return f"{paragraph(f'- {step.sentence}', hanging='  ')}{command}"


def _verdict(said: Said) -> str:
    if not said.details:
        return paragraph(f"{said.verdict}: {said.headline}", hanging="  ")
    caveats = (_caveat(text, "    ") for text in said.caveats)
    return "\n".join((paragraph(said.headline), paragraph(f"{said.verdict}{said.details}", "    "), *caveats))


def _caveat(text: str, indent: str) -> str:
    return paragraph(f"! {text}", indent, hanging="  ")
