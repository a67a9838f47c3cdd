"""The report of outcomes of runs done elsewhere, as a document and as JSON, and the text of a plan for such runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible
from esper_ab.contracts.wording import counted
from esper_ab.design.design import rule
from esper_ab.report.document import Card, Document, Paragraphs, Section, Verdicts
from esper_ab.report.tables.comparison import beside_tables, cards_of, deciding_table, looks_table, overview_table
from esper_ab.report.tables.table import Table, mean_and_sd, number
from esper_ab.report.text import paragraph, written
from esper_ab.report.verdict_json import comparison_json, indented
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.text import digits_for
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.observations import POSITION
from esper_ab.verdict.profiles import HONEST_FROM, Aggregate
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.sentences import rule_sentence
from esper_ab.verdict.verdict import Verdict

EXPLORATORY = (
    "EXPLORATORY. Nothing was declared before these runs: the verdicts are those of a plan with one look. "
    "If groups, margin or number of runs were chosen after seeing outcomes, false claims are more frequent than alpha. "
    "To decide: `esper-ab design`, then fresh runs, then `esper-ab judge`."
)
SCHEMA = 2
_RANKED = 20  # groups in a list


def external_report(result: Answer) -> Document:
    """Return the report of runs done elsewhere, before any layout."""
    how = "Rule" if result.plan else "Rule, chosen after the runs"
    every = tables(result)
    shown = 1 + bool(result.profiles)
    return Document(
        rest="the same command with -v",
        nodes=(
            Paragraphs(
                (EXPLORATORY if result.exploratory else f"Judged by the plan with the sha256 {result.plan[:12]}…",)
            ),
            departures(result),
            *(verdicts(result, task) for task in tasks_of(result)),
            Paragraphs((rule_sentence(result.design),), how),
            *every[:shown],
            Section(tuple(every[shown:])),
            *remarks(result),
        ),
    )


def departures(result: Answer) -> Paragraphs:
    """Return the departures from the plan."""
    return Paragraphs(result.departures, "Not as planned", "caveat")


def remarks(result: Answer) -> list[Paragraphs]:
    """Return the text after the tables: notes and the next step."""
    step = [Paragraphs((result.next_step,))] if result.next_step else []
    return [*(Paragraphs((note,), look="caveat") for note in result.notes), *step]


def tables(result: Answer) -> list[Table]:
    """Return all tables except the verdicts, in reading order."""
    found = [_groups(result), *([_profiles(result)] if result.profiles else [])]
    found += [_improvements(result)] if result.improvements else []
    for task in tasks_of(result):
        compared = compared_in(result, task)
        beside = (
            overview_table(compared[0].design, compared),
            *map(deciding_table, compared),
            *beside_tables(compared),
            *((looks_table(compared),) if result.plan else ()),
        )
        found += [replace(table, title=f"{table.title} ({task})") for table in beside] if task else beside
    return found


def external_json(result: Answer) -> str:
    """Render one JSON object; every key is in docs/other-numbers.md."""
    return indented(external_document(result)).decode()


def external_document(result: Answer) -> dict[str, Any]:
    """Return the contents of the JSON object."""
    return {
        "schema": SCHEMA,
        "exploratory": result.exploratory,
        "plan": result.plan or None,
        "source": result.observations.source,
        "rule": rule(result.design),
        "alpha": result.design.alpha,
        "scales": result.scales,
        "groups": result.observations.groups,
        "comparisons": [{"task": one.question.task, **comparison_json(one)} for one in result.comparisons],
        "departures": result.departures,
        "notes": result.notes,
        "next_step": result.next_step,
        "improvements": result.improvements,
        "profiles": result.profiles,
    }


def render_plan(plan: AnalysisPlan, file: str) -> str:
    """Describe a plan that was written to `file`: the runs to do, the looks, and the rule."""
    design = plan.design
    tasks = [task for task in plan.tasks if task]
    first = plan.replicates[0]
    last = plan.replicates[-1]
    runs = len(plan.groups) * len(plan.replicates) * len(plan.scales)
    margins = ", ".join(
        f"{f'{scale.task}: ' if scale.task else ''}{scale.outcome.difference(f'{scale.margin:g}')} "
        f"({scale.outcome.better} is better)"
        for scale in plan.scales
    )
    parts = [
        f"{file}: {', '.join(plan.groups)}, {counted(len(plan.replicates), 'seed')} ({first} to {last}), "
        f"{counted(runs, 'run')} at most"
    ]
    if plan.cells:
        each = f"{len(plan.groups) * len(plan.cells) * len(plan.choosing)} runs"
        parts.append(
            paragraph(
                f"Before that each group runs in every cell ({', '.join(plan.cells)}) with the seeds "
                f"{', '.join(plan.choosing)}, {each}; `judge` then names the cell in which each group is judged.",
                "",
            )
        )
    if tasks:
        parts.append(paragraph(f"Tasks: {', '.join(tasks)}, and their mean in units of each margin.", ""))
    worsts = [
        f"{scale.outcome.value(f'{scale.worst:g}')}{f' in {scale.task}' if scale.task else ''}"
        for scale in plan.scales
        if scale.worst is not None
    ]
    if worsts:
        lost = f" Lost runs of a group that is called better count as {', '.join(worsts)}."
    else:
        lost = ""
    parts += [paragraph(f"Margin: {margins}.{lost}", ""), paragraph(rule_sentence(design), "")]
    if design.boundaries:
        parts.append(written(_looks_to_come(plan)))
    columns = f"group,{'task,' if tasks else 'cell,' if plan.cells else ''}seed,outcome"
    parts.append(
        "\n".join(
            (
                paragraph(
                    f"One row per run, with the header {columns}; a run that failed has an empty outcome. Then:", ""
                ),
                f"  {shell_command('judge', file)} RESULTS.csv",
            )
        )
    )
    parts.append(
        paragraph(
            f"sha256 {plan.digest}: if published before the first run, in a commit or a dated message, it shows that "
            "the plan came first.",
            "",
        )
    )
    return visible("\n\n".join(parts)) + "\n"


def _looks_to_come(plan: AnalysisPlan) -> Table:
    design = plan.design
    rows = tuple(
        (f"{index + 1}", f"{look}", plan.replicates[look - 1], f"p <= {bound:.2g}")
        for index, (look, bound) in enumerate(zip(design.looks, design.boundaries[0].nominal_p, strict=True))
    )
    return Table("Looks", ("look", "seeds", "the last seed", "bound"), rows, words=0)


def tasks_of(result: Answer) -> list[str]:
    """Return the tasks in order, then the mean over the tasks."""
    return list(dict.fromkeys(one.question.task for one in result.comparisons))


def compared_in(result: Answer, task: str) -> list[Comparison]:
    """Return the comparisons in one task."""
    return [one for one in result.comparisons if one.question.task == task]


def heading(task: str) -> str:
    """Return the heading of a task, or of the mean over tasks."""
    if task == MEAN:
        return "mean over the named tasks, in units of each task's margin"
    return task


def verdicts(result: Answer, task: str) -> Verdicts:
    """Return the verdicts in one task."""
    compared = compared_in(result, task)
    mark = "exploratory " if result.exploratory else ""
    if result.exploratory and len(compared) > 1 and all(one.verdict is Verdict.NO_INFERENCE for one in compared):
        card = Card(f"{mark}{Verdict.NO_INFERENCE}", _too_few(result, task, compared))
        return Verdicts((card,), compared[0].question.scope, where=heading(task))
    cards, shared = cards_of(compared, mark)
    return Verdicts(cards, compared[0].question.scope, shared, heading(task))


def _too_few(result: Answer, task: str, compared: Sequence[Comparison]) -> str:
    """Say, for several comparisons of which none has enough runs, what is missing, how they look, and what to do."""
    observations = result.observations
    design = compared[0].design
    seeds = observations.pair_column != POSITION and compared[0].samples is None
    unit = observations.pair_column if seeds else "run"
    values = {group: _values(result, group, task) for group in result.design.groups}
    most = max(map(len, values.values()))
    who = "No group has" if most < LEAST_PAIRS else "No two of the compared groups share"
    least = counted(LEAST_PAIRS, unit)
    said = [f"{who} {least}, so no difference between the {len(values)} groups can be judged."]
    means = {group: fmean(found) for group, found in values.items() if found}
    order = sorted(means, key=lambda group: -design.outcome.sign * means[group])
    if order:
        more = f", and {len(order) - _RANKED} more" if len(order) > _RANKED else ""
        shown = ", ".join(f"{group} {design.value(means[group])}" for group in order[:_RANKED])
        said.append(f"Their means, best first, which may be luck: {shown}{more}.")
    said.append(f"To decide, name the few groups that matter and run each with {LEAST_PAIRS} fresh {unit}s or more.")
    return " ".join(said)


def _values(result: Answer, group: str, task: str) -> list[float]:
    """Return the outcomes of a group in one task; none for the mean over tasks."""
    runs = (run for (of, at, _), run in result.observations.cells.items() if (of, at) == (group, task))
    return [run.value for run in runs if run.value is not None]


def _groups(result: Answer) -> Table:
    """Build the table of every group's outcomes."""
    cells = result.observations.cells
    rows = list[tuple[str, ...]]()
    for scale in result.scales:
        digits = digits_for(scale.margin)
        for group in result.design.groups:
            runs = [run for key, run in cells.items() if key[:2] == (group, scale.task)]
            values = [run.value for run in runs if run.value is not None]
            if not scale.task:
                title = scale.outcome.title
            else:
                title = f"{scale.task}, {scale.outcome.title}"
            rows.append(
                (
                    group,
                    title,
                    str(len(values)),
                    str(len(runs) - len(values)),
                    mean_and_sd(values, digits),
                    *(number(edge(values), digits) if values else "n/a" for edge in (min, max)),
                )
            )
    return Table(
        "All runs, by group",
        ("group", "outcome", "runs", "lost", "mean (SD)", "least", "most"),
        tuple(rows),
        words=2,
    )


def _profiles(result: Answer) -> Table:
    """Build the table of the groups' scores over all tasks."""

    def cell(one: Aggregate) -> str:
        return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"

    rows = tuple(
        (one.group, cell(one.interquartile_mean), cell(one.optimality_gap), str(one.runs)) for one in result.profiles
    )
    few = min(one.runs for one in result.profiles) < HONEST_FROM
    if few:
        honest = f" With fewer than {HONEST_FROM} runs per task, their coverage is below 95 %."
    else:
        honest = ""
    return Table(
        "Scores over all tasks",
        rows=rows,
        columns=("group", "interquartile mean", "optimality gap", "runs"),
        note=f"95 % bootstrap intervals, stratified by task; they are descriptive and decide nothing.{honest}",
    )


def _improvements(result: Answer) -> Table:
    """Build the table of probabilities of improvement over all tasks."""
    rows = tuple(
        (f"{one.a} over {one.b}", f"{one.probability:.2f} ({one.low:.2f} to {one.high:.2f})", str(one.runs))
        for one in result.improvements
    )
    few = min(one.runs for one in result.improvements) < HONEST_FROM
    if few:
        honest = f" With fewer than {HONEST_FROM} runs per task, their coverage is below 95 %."
    else:
        honest = ""
    return Table(
        "Probability of improvement over all tasks",
        rows=rows,
        columns=("comparison", "probability", "runs"),
        note=(
            "The chance that a run of the first group is better than one of the second, equal ones one half, averaged "
            f"over tasks, with 95 % bootstrap intervals, stratified by task; it decides nothing.{honest}"
        ),
    )
