"""Content -> summary.txt: the contents of the HTML page for a terminal. Plain ASCII-friendly text, no colour."""

from __future__ import annotations

import textwrap

from esper_ab.contracts.visible import visible, visible_line
from esper_ab.report.content import Content
from esper_ab.report.sections import rule_sentence, sections
from esper_ab.report.tables.table import Table
from esper_ab.report.tables.trust import reproduction
from esper_ab.report.verdicts import Said, shared_caveats, verdicts

WIDTH = 100
_WIDEST_WORDS = 62  # wider text in the last column is wrapped


def paragraph(text: str, indent: str = "  ", hanging: str = "") -> str:
    """Wrap text; a name longer than a line is left whole."""
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def render_table(table: Table) -> str:
    """Pad columns to their widest cell: text to the left, numbers to the right; text in the last column wraps."""
    rows = [tuple(map(visible_line, row)) for row in table.rows]
    lines = [tuple(map(visible_line, table.columns)), *rows] if any(table.columns) else rows
    wraps = table.words >= len(table.columns) > 1
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(len(table.columns))]
    text = [table.title]
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


def _wrapped(before: str, words: str) -> str:
    """Wrap the last cell of a row below itself, or below the row when too little room is left."""
    room = WIDTH - len(before)
    if room < 30:
        return f"{before.rstrip()}\n{paragraph(words, '      ')}"
    first, *rest = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join([f"{before}{first}".rstrip(), *(" " * len(before) + line for line in rest)])


def render_text(content: Content) -> str:
    """Render the whole summary, ending in a newline."""
    plan = content.history.plan
    title = f"esper_ab: {content.title}"
    parts = [f"{title}\n{'=' * len(title)}"]
    if not content.state.complete:
        how = "" if content.state.word == "incomplete" else f" ({content.state.word})"
        parts.append(paragraph(f"INCOMPLETE{how}. {content.state.sentence}", ""))
    shared = (_caveat(text, "  ") for text in shared_caveats(content))
    parts.append("VERDICT\n" + "\n".join((*map(_verdict, verdicts(content)), *shared)))
    parts.append(f"QUESTION\n{paragraph(plan.estimand)}\n{paragraph(rule_sentence(content))}")
    parts += [render_table(table) for section in sections(content) for table in section.tables]
    parts.append("Commands that make the same experiment: git in a checkout, the others here\n" + "\n".join(
        f"  {visible_line(line)}" for line in reproduction(content.history)
    ))  # fmt: skip
    if plan.notes:
        parts.append("Notes of the plan\n" + "\n".join(paragraph(f"- {note}", hanging="  ") for note in plan.notes))
    if content.state.complete:
        parts.append(paragraph(content.state.sentence, ""))
    return visible("\n\n".join(parts)) + "\n"


def _verdict(said: Said) -> str:
    if not said.details:
        return paragraph(f"{said.verdict}: {said.headline}", hanging="  ")
    caveats = (_caveat(text, "    ") for text in said.caveats)
    return "\n".join((paragraph(said.headline), paragraph(f"{said.verdict}{said.details}", "    "), *caveats))


def _caveat(text: str, indent: str) -> str:
    return paragraph(f"! {text}", indent, hanging="  ")
