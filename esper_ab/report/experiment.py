"""The report of an experiment: its document, and the brief version that a command prints at its end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible, visible_line
from esper_ab.plan.text import question
from esper_ab.report.basis import basis
from esper_ab.report.content import Content
from esper_ab.report.document import Document, Figures, Item, Legend, Points, Reasons, Section
from esper_ab.report.figures.catalogue import drawn
from esper_ab.report.next_steps import next_steps
from esper_ab.report.sections import sections
from esper_ab.report.tables import groups
from esper_ab.report.tables.guardrails import guardrail_tables
from esper_ab.report.text import next_step, paragraph, warned
from esper_ab.report.verdicts import alone, verdicts


def experiment_report(content: Content) -> Document:
    """Return the report of an experiment, before any layout.

    The first screen has everything but the folded sections.
    """
    plan = content.history.plan
    reasons = Reasons(
        basis=Points("What it rests on", tuple(map(Item, basis(content)))),
        remarks=Points("Worth knowing", tuple(map(Item, content.analysis.remarks))),
        steps=Points("What to do next", next_steps(content)),
    )
    return Document(
        title=content.title,
        name=plan.experiment.name,
        question=question(plan),
        state=content.state,
        rest=shell_command("report", content.place, "--verbose"),
        footer=f"{content.state.sentence} Every number follows from events.jsonl.",
        interactive=True,
        nodes=(
            verdicts(content),
            *alone(content),
            *guardrail_tables(content.comparisons),
            Section((Figures(partial(drawn, "answer", content)),)),
            Legend(content.groups),
            groups.results_table(content),
            reasons,
            *sections(content),
        ),
    )


def render_brief(content: Content, page: str, closing: Sequence[str] = ()) -> str:
    """Render the brief version: question, headlines with their caveats, first step, and path of the report.

    `closing`: sentences that end the answer, on the experiment and those that it replicates. There is no newline at
    the end.
    """
    content_verdicts = verdicts(content)
    sentences = [question(content.history.plan)]
    for card in content_verdicts.cards:
        sentences.append(card.headline)
        sentences += [f"! {caveat}" for caveat in card.caveats]
    sentences += [f"! {caveat}" for caveat in content_verdicts.shared]
    for node in alone(content):
        sentences += node.paragraphs
    sentences += closing
    lines = warned(content.state)
    lines += [paragraph(visible_line(sentence), "", hanging_indent="  ") for sentence in sentences]
    lines.append(f"report: {visible_line(page)}")
    lines += map(next_step, next_steps(content)[:1])
    return visible("\n".join(lines))
