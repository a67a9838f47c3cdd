"""The answer of a joint experiment: summary.txt, verdict.json and report.html, from the journals of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.experiment_files import PAGE, SUMMARY, VERDICT
from esper_ab.contracts.files import write_below
from esper_ab.contracts.wording import visible, visible_line
from esper_ab.readers.joint import JointResult
from esper_ab.report.content import indented
from esper_ab.report.external import (
    compared_in,
    external_document,
    heading,
    render_external,
    tables,
    tasks_of,
    verdicts_text,
)
from esper_ab.report.figures.catalogue import external_figure
from esper_ab.report.figures.style import Drawing
from esper_ab.report.page import render_template
from esper_ab.report.tables.table import Table
from esper_ab.report.text import WIDTH, paragraph, render_table
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.sentences import rule_sentence
from esper_ab.verdict.vocabulary import MEAN

SCHEMA = 1


def write_joint_report(directory: Path, result: JointResult) -> None:
    """Write the three files of the answer below `directory`."""
    write_below(directory, SUMMARY, render_joint(result).encode())
    write_below(directory, VERDICT, render_joint_json(result).encode())
    write_below(directory, PAGE, render_joint_page(result).encode())


def render_joint(result: JointResult) -> str:
    """Render the whole summary for a terminal, ending in a newline."""
    title = f"esper_ab: {_title(result)}"
    head = [f"{title}\n{'=' * min(len(title), WIDTH)}"]
    if not result.complete:
        head.append(paragraph(_incomplete(result), ""))
    return visible("\n\n".join([*head, *map(render_table, _tables(result)), render_external(result.judged)]))


def render_joint_brief(result: JointResult, page: Path) -> str:
    """Render what a terminal is left with: the verdict on the mean, one line per part, where the report is."""
    judged = result.judged
    lines = [] if result.complete else [paragraph(_incomplete(result), "")]
    lines += [verdicts_text(judged, MEAN)]
    for task in tasks_of(judged):
        if task != MEAN:
            lines += [paragraph(f"{task}: {one.verdict}: {one.headline}", hanging="  ")
                      for one in compared_in(judged, task)]  # fmt: skip
    return visible("\n".join([*lines, f"report: {visible_line(str(page))}"]))


def render_joint_json(result: JointResult) -> str:
    """Render one JSON object, ending in a newline; every key is in docs/several-tasks.md."""
    document: dict[str, Any] = {
        "schema": SCHEMA, "experiment": result.name, "complete": result.complete,
        "parts": [
            {"name": now.part.name, "folder": now.part.folder, "plan": now.part.digest, "state": now.state,
             "runs": now.runs, "of_runs": now.of_runs}
            for now in result.parts
        ],
        "audit": [{"part": part, **msgspec.to_builtins(finding)} for part, finding in result.findings],
        "judged": external_document(result.judged),
    }  # fmt: skip
    return indented(document).decode() + "\n"


def render_joint_page(result: JointResult) -> str:
    """Render the page; the same text for the same journals."""
    judged = result.judged
    order = sorted(tasks_of(judged), key=lambda task: task != MEAN)  # the answer over all first
    cards = [(heading(task), item) for task in order for item in compared_in(judged, task)]
    return render_template(
        "joint.html.jinja", title=_title(result), called=result.name, cards=cards, drawing_of=_drawing(result),
        incomplete="" if result.complete else _incomplete(result), departures=judged.departures, notes=judged.notes,
        rule=rule_sentence(judged.design), next_step=judged.next_step, plan=judged.plan, parts=result.parts,
        tables=[*_tables(result), *tables(judged)],
    )  # fmt: skip


def comparisons_on_mean(result: JointResult) -> list[Comparison]:
    """Return the comparisons over all parts, which requirements are held against."""
    return compared_in(result.judged, MEAN)


def _title(result: JointResult) -> str:
    groups = result.judged.design.groups
    between = " against " if len(groups) == 2 else ", "
    return f"{between.join(groups)} on {', '.join(now.part.name for now in result.parts)}"


def _incomplete(result: JointResult) -> str:
    done, planned = sum(now.runs for now in result.parts), sum(now.of_runs for now in result.parts)
    rest = "a look is taken when all parts are done"
    if all(now.state == "finished" for now in result.parts):
        rest = "the seeds of the others were given up"
    return f"INCOMPLETE. {done} of {planned} runs are evaluated; {rest}."


def _tables(result: JointResult) -> list[Table]:
    rows = tuple(
        (now.part.name, now.state, f"{now.runs} of {now.of_runs}", f"{now.part.folder}/{PAGE}")
        for now in result.parts
    )
    parts = Table(
        title="Parts", columns=("part", "state", "runs evaluated", "report"), rows=rows, words=2, wide=True,
        note="Each report holds its share of alpha, so that it claims nothing that is not claimed here.",
    )
    found = Table(
        title="What the audits of the parts found", columns=("part", "weight", "finding"), words=3, wide=True,
        rows=tuple((part, finding.weight, finding.sentence) for part, finding in result.findings),
    )
    return [parts, found] if found else [parts]


def _drawing(result: JointResult) -> Drawing | None:
    judged = result.judged
    if not any(one.estimate is not None for one in judged.comparisons):
        return None
    below = " Below: the share of runs whose score exceeds a value." if judged.profiles else ""
    said = "; ".join(f"{heading(one.question.task)}: {one.headline}" for one in judged.comparisons)
    return Drawing(
        name="joint", title="Differences in units of their margins", alt=said, wide=True,
        figure=external_figure(judged),
        caption=f"Every comparison with its interval, better to the right; shaded: within the margin.{below}",
    )
