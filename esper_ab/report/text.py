"""Content -> text: summary.txt for a terminal, Markdown for a pull request."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from esper_ab.contracts.wording import visible, visible_line
from esper_ab.report.answer import Step, basis, next_steps, question, reproduction
from esper_ab.report.content import Content
from esper_ab.report.sections import Said, rule_sentence, sections, shared_caveats, verdicts
from esper_ab.report.tables.table import Table

# --- text ------------------------------------------------------------------------------------------------------------
# Content -> summary.txt: the contents of the HTML page for a terminal. Plain ASCII-friendly text, no colour.


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
    return visible("\n\n".join(_parts(content))) + "\n"


def _parts(content: Content) -> Iterator[str]:
    plan = content.history.plan
    title = f"esper_ab: {content.title}"
    yield f"{title}\n{'=' * min(len(title), WIDTH)}"
    yield from _incomplete(content)
    yield f"QUESTION\n{paragraph(question(content))}"
    shared = (_caveat(text, "  ") for text in shared_caveats(content))
    yield "\n".join(("VERDICT", *map(_verdict, verdicts(content)), *shared))
    yield _points("WHAT IT RESTS ON", basis(content))
    if content.analysis.remarks:
        yield _points("WHAT A READER WOULD ASK", content.analysis.remarks)
    if steps := next_steps(content):
        yield "\n".join(("WHAT TO DO NEXT", *map(_step, steps)))
    yield f"EXACTLY\n{paragraph(plan.estimand)}\n{paragraph(rule_sentence(content))}"
    yield from (render_table(table) for section in sections(content) for table in section.tables)
    commands = (f"  {visible_line(line)}" for line in reproduction(content))
    yield "\n".join(("Commands that make the same experiment", *commands))
    if plan.notes:
        yield _points("Notes of the plan", plan.notes)
    if content.state.complete:
        yield paragraph(content.state.sentence, "")


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
    state = content.state
    return [] if state.complete else [paragraph(f"{state.warning}. {state.sentence}", "")]


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


# --- markdown --------------------------------------------------------------------------------------------------------
# Content -> Markdown for a pull request: the verdict first, the rest folded away. Names cannot become markup.


_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_OPEN = ("outcome",)  # sections that are not folded away


def escaped(text: str) -> str:
    """Return `text` as one line in which Markdown, GitHub's mentions and HTML find no markup."""
    text = visible_line(" ".join(text.split()))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\1", text)
    return text.replace("@", "&#64;").replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def render_markdown(content: Content) -> str:
    """Render the whole report except its figures, ending in a newline."""
    return "\n\n".join(filter(None, _markdown_parts(content))) + "\n"


def _markdown_parts(content: Content) -> Iterator[str]:
    plan, state = content.history.plan, content.state
    yield f"## {escaped(content.title)}"
    yield escaped(question(content))
    if not state.complete:
        yield f"> **{state.warning}.** {escaped(state.sentence)}"
    yield from map(_markdown_verdict, verdicts(content))
    yield from map(escaped, shared_caveats(content))
    yield _bullets((*basis(content), *content.analysis.remarks))
    yield "\n".join(map(_markdown_step, next_steps(content)))
    yield f"**Exactly.** {escaped(plan.estimand)} {escaped(rule_sentence(content))}"
    for section in sections(content):
        tables, title = "\n\n".join(map(_table, section.tables)), escaped(section.title)
        if tables and section.key in _OPEN:
            yield f"### {title}\n\n{tables}"
        elif tables:
            yield f"<details><summary>{title}</summary>\n\n{tables}\n\n</details>"
    commands = "\n".join(map(visible_line, reproduction(content)))
    yield f"<details><summary>Reproduce</summary>\n\n```sh\n{commands}\n```\n\n</details>"
    yield _bullets(plan.notes)
    if state.complete:
        yield escaped(state.sentence)


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(sentence)}" for sentence in sentences)


def _markdown_step(step: Step) -> str:
    code = f"\n\n  ```sh\n  {visible_line(step.command)}\n  ```" if step.command else ""
    return f"- {escaped(step.sentence)}{code}"


def _markdown_verdict(said: Said) -> str:
    if not said.details:
        return f"- **{escaped(said.verdict)}** {escaped(said.headline)}"
    caveats = "".join(f"\n  - {escaped(caveat)}" for caveat in said.caveats)
    details = escaped(f"{said.verdict}{said.details}")
    return f"- **{escaped(said.headline)}**\n\n  {details}\n{caveats}".rstrip()


def _table(table: Table) -> str:
    below = ["---" if place < table.words else "---:" for place in range(len(table.columns))]
    head, *rows = (_row(map(escaped, cells)) for cells in (table.columns, *table.rows))
    parts = [f"**{escaped(table.title)}**"]
    if rows:
        parts.append("\n".join([head, _row(below), *rows]))
    if table.note:
        parts.append(f"<sub>{escaped(table.note)}</sub>")
    return "\n\n".join(parts)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
