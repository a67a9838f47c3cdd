"""The answer of a joint experiment: summary.txt, verdict.json and report.html, from the journals of its parts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.answer_files import PAGE, SUMMARY, VERDICT
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible, visible_line
from esper_ab.readers.joint import JointResult
from esper_ab.report.content import against
from esper_ab.report.document import Document, Figures, Links, Paragraphs, Section
from esper_ab.report.external import departures, external_document, heading, mean_first, remarks, tables, verdicts
from esper_ab.report.figures.drawing import Drawing
from esper_ab.report.figures.external import external_figure
from esper_ab.report.page import render_page
from esper_ab.report.parts_state import state_over_parts
from esper_ab.report.tables.table import Table
from esper_ab.report.text import paragraph, render_text, warned, written
from esper_ab.report.verdict_json import indented
from esper_ab.verdict.rule_sentence import rule_sentence
from esper_ab.verdict.scale import MEAN

SCHEMA = 2


def write_joint_report(directory: Path, result: JointResult) -> Document:
    """Write the three files of the answer to the folder `directory`, and return the report."""
    document = joint_report(result, str(directory))
    write_below(directory, SUMMARY, render_text(document).encode())
    write_below(directory, VERDICT, render_joint_json(result).encode())
    write_below(directory, PAGE, render_page(document).encode())
    return document


def joint_report(result: JointResult, place: str = "EXPERIMENT") -> Document:
    """Return the report of a joint experiment, before any layout; the answer over all parts comes first."""
    joint_answer = result.judged
    rule = f"Rule, declared before the first run: {rule_sentence(joint_answer.design)}"
    links = tuple(
        (part_state.part.name, f"{part_state.part.folder}/{PAGE}", part_state.state) for part_state in result.parts
    )
    parts = ", ".join(part_state.part.name for part_state in result.parts)
    return Document(
        title=f"{against(joint_answer.design.groups)} on {parts}",
        name=result.name,
        state=state_over_parts(result.loaded_parts),
        rest=shell_command("report", place, "--verbose"),
        footer=f"Judged by the plan with the digest {result.digest}. Every number follows from the parts' journals.",
        nodes=(
            *(verdicts(joint_answer, task) for task in mean_first(joint_answer)),
            Figures(partial(_drawings, result)),
            departures(joint_answer),
            Paragraphs((rule,)),
            Links(links),
            *remarks(joint_answer),
            Section((*_tables(result), *tables(joint_answer))),
        ),
    )


def render_joint_brief(result: JointResult, page: Path) -> str:
    """Render the brief version: the verdict on the mean, one line per part, and the path of the report."""
    lines = [*warned(state_over_parts(result.loaded_parts)), written(verdicts(result.judged, MEAN))]
    for comparison in result.judged.comparisons:
        if comparison.question.task != MEAN:
            headline, *caveats = comparison.answer
            lines.append(
                paragraph(f"{comparison.question.task}: {comparison.verdict}: {headline}", hanging_indent="  ")
            )
            lines += [paragraph(caveat, hanging_indent="  ") for caveat in caveats]
    lines.append(f"report: {visible_line(str(page))}")
    return visible("\n".join(lines))


def render_joint_json(result: JointResult) -> str:
    """Render one JSON object, ending in a newline; every key is in docs/several-tasks.md."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "experiment": result.name,
        "plan": result.digest,
        "complete": result.complete,
        "parts": [
            {
                "name": part_state.part.name,
                "folder": part_state.part.folder,
                "plan": part_state.part.digest,
                "state": part_state.state,
                "runs": part_state.runs,
                "of_runs": part_state.of_runs,
            }
            for part_state in result.parts
        ],
        "audit": [{"part": part, **msgspec.to_builtins(finding)} for part, finding in result.findings],
        "judged": external_document(result.judged),
    }
    return indented(document).decode() + "\n"


def _tables(result: JointResult) -> tuple[Table, ...]:
    rows = tuple(
        (
            part_state.part.name,
            part_state.state,
            f"{part_state.runs} of {part_state.of_runs}",
            f"{part_state.part.folder}/{PAGE}",
        )
        for part_state in result.parts
    )
    parts = Table(
        "Parts",
        ("part", "state", "runs evaluated", "report"),
        rows,
        words=2,
        note="Each part's report uses only its share of alpha, so it makes no claim that is not made here.",
    )
    findings = Table(
        "What the audits of the parts found",
        ("part", "weight", "finding"),
        words=3,
        rows=tuple((part, finding.weight, finding.sentence) for part, finding in result.findings),
    )
    return parts, findings


def _drawings(result: JointResult) -> list[Drawing]:
    joint_answer = result.judged
    if all(comparison.estimate is None for comparison in joint_answer.comparisons):
        return []
    caption = "Every comparison with its interval, better to the right; shaded: within the margin."
    if joint_answer.profiles:
        caption += " Below: the share of runs whose score exceeds a value."
    headlines = [
        f"{heading(comparison.question.task)}: {comparison.headline}" for comparison in joint_answer.comparisons
    ]
    figure = external_figure(joint_answer)
    effects_drawing = Drawing(
        "joint", "Differences in units of their margins", alt="; ".join(headlines), figure=figure, caption=caption
    )
    return [effects_drawing]
