"""Content -> Markdown for a pull request: the verdict first, the rest folded away. Names cannot become markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from esper_ab.contracts.visible import visible_line
from esper_ab.report.answer import basis, next_steps, question, reproduction
from esper_ab.report.content import Content
from esper_ab.report.sections import rule_sentence, sections
from esper_ab.report.tables.table import Table
from esper_ab.report.verdicts import Said, shared_caveats, verdicts

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
    plan, state = content.history.plan, content.state
    parts = [f"## {escaped(content.title)}"]
    if not state.complete:
        how = "" if state.word == "incomplete" else f" ({state.word})"
        parts.append(f"> **INCOMPLETE{how}.** {escaped(state.sentence)}")
    parts += map(_verdict, verdicts(content))
    parts += [escaped(caveat) for caveat in shared_caveats(content)]
    parts.insert(1, escaped(question(content)))
    parts.append("\n".join(f"- {escaped(sentence)}" for sentence in (*basis(content), *content.analysis.remarks)))
    steps = (f"- {escaped(step.sentence)}{_code(step.command)}" for step in next_steps(content))
    parts.append("\n".join(steps))
    parts.append(f"**Exactly.** {escaped(plan.estimand)} {escaped(rule_sentence(content))}")
    for section in sections(content):
        tables = "\n\n".join(_table(table) for table in section.tables)
        if not tables:
            continue
        if section.key in _OPEN:
            parts.append(f"### {escaped(section.title)}\n\n{tables}")
        else:
            parts.append(f"<details><summary>{escaped(section.title)}</summary>\n\n{tables}\n\n</details>")
    commands = "\n".join(map(visible_line, reproduction(content)))
    parts.append(f"<details><summary>Reproduce</summary>\n\n```sh\n{commands}\n```\n\n</details>")
    if plan.notes:
        parts.append("\n".join(f"- {escaped(note)}" for note in plan.notes))
    if state.complete:
        parts.append(escaped(state.sentence))
    return "\n\n".join(filter(None, parts)) + "\n"


def _code(command: str) -> str:
    return f"\n\n  ```sh\n  {visible_line(command)}\n  ```" if command else ""


def _verdict(said: Said) -> str:
    if not said.details:
        return f"- **{escaped(said.verdict)}** {escaped(said.headline)}"
    caveats = "".join(f"\n  - {escaped(caveat)}" for caveat in said.caveats)
    details = escaped(f"{said.verdict}{said.details}")
    return f"- **{escaped(said.headline)}**\n\n  {details}\n{caveats}".rstrip()


def _table(table: Table) -> str:
    lines = [f"**{escaped(table.title)}**"]
    if table.rows:
        lines.append("\n".join(_rows(table)))
    if table.note:
        lines.append(f"<sub>{escaped(table.note)}</sub>")
    return "\n\n".join(lines)


def _rows(table: Table) -> Iterator[str]:
    yield _row(tuple(escaped(column) for column in table.columns))
    yield _row(tuple("---" if place < table.words else "---:" for place in range(len(table.columns))))
    for row in table.rows:
        yield _row(tuple(escaped(cell) for cell in row))


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
