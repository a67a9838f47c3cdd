"""The report of outcomes of runs done elsewhere, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from esper_ab.contracts.wording import listed
from esper_ab.design.design import rule, test_words
from esper_ab.report.best_groups import best_json, best_verdict, pairs_of, standings_table
from esper_ab.report.document import Card, Document, Node, Paragraphs, Section, Verdicts
from esper_ab.report.tables.comparison import beside_tables, cards_of, deciding_table, looks_table, overview_table
from esper_ab.report.tables.table import Table, mean_and_sd, number
from esper_ab.report.too_few_runs import describe_too_few_runs
from esper_ab.report.verdict_json import comparison_json, indented
from esper_ab.stats.text import digits_for
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.level_words import level_rule
from esper_ab.verdict.profiles import HONEST_FROM, Aggregate
from esper_ab.verdict.rule_sentence import rule_sentence
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import Verdict

EXPLORATORY = (
    "EXPLORATORY. Nothing was declared before these runs: the verdicts are those of a plan with one look. "
    "If groups, margin or number of runs were chosen after seeing outcomes, false claims are more frequent than alpha. "
    "To decide: `esper-ab design`, then fresh runs, then `esper-ab judge`."
)
SCHEMA = 2


def external_report(result: Answer) -> Document:
    """Return the report of runs done elsewhere, before any layout."""
    if result.exploratory:
        authority = EXPLORATORY
    else:
        authority = f"Judged by the plan with the sha256 {result.plan[:12]}…"
    rule_title = "Rule" if result.plan else "Rule, chosen after the runs"
    all_tables = tables(result)
    first_tables = 2 if result.profiles else 1  # tables on the first screen
    return Document(
        rest="the same command with -v",
        nodes=(
            *_reading(result),
            Paragraphs((authority,)),
            departures(result),
            *_answers(result),
            Paragraphs((_rule(result),), rule_title),
            *all_tables[:first_tables],
            Section((*_cards_below(result), *all_tables[first_tables:])),
            *remarks(result),
        ),
    )


def _answers(result: Answer) -> list[Node]:
    """Return the verdicts or, of many groups, those that may be the best and then the pairs."""
    tasks = tasks_of(result)
    best_set = result.best
    if best_set is None:
        return [verdicts(result, task) for task in tasks]
    compared_items = compared_in(result, best_set.task)
    mark = _mark(result)
    nodes: list[Node] = [
        best_verdict(best_set, compared_items, mark, heading(best_set.task)),
        standings_table(best_set, compared_items),
    ]
    for task in tasks:
        nodes += pairs_of(compared_in(result, task), mark, heading(task))
    return nodes


def _cards_below(result: Answer) -> list[Verdicts]:
    """Return the verdicts that a table has replaced on the first screen."""
    if result.best is None:
        return []
    return [replace(verdicts(result, task), shared=()) for task in tasks_of(result)]


def _mark(result: Answer) -> str:
    """Return the word before each verdict."""
    return "exploratory " if result.exploratory else ""


def _reading(result: Answer) -> list[Paragraphs]:
    """Return what was read, such as the step of the outcomes, and the level of the answer."""
    reading_words = result.observations.reading
    return [Paragraphs(reading_words)] if reading_words else []


def _rule(result: Answer) -> str:
    items = result.observations.items
    if items is None or items.closed:
        return rule_sentence(result.design, _exact_test(result))
    return level_rule(items, result.design)


def _exact_test(result: Answer) -> str:
    """Return the test that decided comparisons whose outcomes are all 0 or 1; "" if there are none."""
    exact = [item.test for item in result.comparisons if item.proportions is not None]
    if not exact:
        return ""
    test_names = listed(list(dict.fromkeys(exact)))
    if len(exact) == len(result.comparisons):
        return test_names
    return f"{test_words(result.design)}, {test_names} where every outcome is 0 or 1"


def departures(result: Answer) -> Paragraphs:
    """Return the departures from the plan."""
    return Paragraphs(result.departures, "Not as planned", "caveat")


def remarks(result: Answer) -> list[Paragraphs]:
    """Return the text after the tables: notes and the next step."""
    paragraphs = [Paragraphs((note,), look="caveat") for note in result.notes]
    if result.next_step:
        paragraphs.append(Paragraphs((result.next_step,)))
    return paragraphs


def tables(result: Answer) -> list[Table]:
    """Return all tables except the verdicts, in reading order."""
    all_tables = [groups_table(result)]
    if result.profiles:
        all_tables.append(_profiles(result))
    if result.improvements:
        all_tables.append(_improvements(result))
    for task in tasks_of(result):
        task_tables = _tables_of(result, compared_in(result, task))
        if task:
            task_tables = [replace(table, title=f"{table.title} ({task})") for table in task_tables]
        all_tables += task_tables
    return all_tables


def _tables_of(result: Answer, compared_items: Sequence[Comparison]) -> list[Table]:
    """Build the tables of the comparisons in one task."""
    built = [
        overview_table(compared_items[0].design, compared_items),
        *map(deciding_table, compared_items),
        *beside_tables(compared_items),
    ]
    if result.plan:
        built.append(looks_table(compared_items))
    return built


def external_json(result: Answer) -> str:
    """Render one JSON object; every key is in docs/other-numbers.md."""
    return indented(external_document(result)).decode()


def external_document(result: Answer) -> dict[str, Any]:
    """Return the contents of the JSON object."""
    comparisons = [
        {"task": item.question.task, **comparison_json(item), **_asked_items(item)} for item in result.comparisons
    ]
    best_tree = {} if result.best is None else {"best": best_json(result.best)}
    reading = {"reading": result.observations.reading} if result.observations.reading else {}
    return {
        "schema": SCHEMA,
        "exploratory": result.exploratory,
        "plan": result.plan or None,
        "source": result.observations.source,
        "rule": rule(result.design, _exact_test(result)),
        "alpha": result.design.alpha,
        "scales": result.scales,
        "groups": result.observations.groups,
        **best_tree,
        "comparisons": comparisons,
        "departures": result.departures,
        **reading,
        "notes": result.notes,
        "next_step": result.next_step,
        "improvements": result.improvements,
        "profiles": result.profiles,
        **_level(result),
    }


def _level(result: Answer) -> dict[str, Any]:
    """Return the level of the answer and what it rests on; {} if a row is a run, without items."""
    items = result.observations.items
    if items is None:
        level = result.comparisons[0].question.level if result.comparisons else None
        return {} if level is None else {"level": level}
    return {
        "level": items.level,
        "items": {
            "unit": items.unit,
            "closed": items.closed,
            "clustered": items.clustered,
            "repeats": items.repeats,
            "left_out": items.left_out,
            "lost": {group: items.lost_of(group) for group in result.observations.groups},
        },
    }


def _asked_items(item: Comparison) -> dict[str, Any]:
    """Return the items and runs of one comparison; {} without items."""
    items_question = item.question.items
    return {} if items_question is None else {"items": items_question}


def tasks_of(result: Answer) -> list[str]:
    """Return the tasks in order, then the mean over the tasks."""
    return list(dict.fromkeys(item.question.task for item in result.comparisons))


def mean_first(result: Answer) -> list[str]:
    """Return the mean over tasks, then the tasks in order."""
    return sorted(tasks_of(result), key=lambda task: task != MEAN)


def compared_in(result: Answer, task: str) -> list[Comparison]:
    """Return the comparisons in one task."""
    return [item for item in result.comparisons if item.question.task == task]


def heading(task: str) -> str:
    """Return the heading of a task, or of the mean over tasks."""
    if task == MEAN:
        return "mean over the named tasks, in units of each task's margin"
    return task


def verdicts(result: Answer, task: str) -> Verdicts:
    """Return the verdicts in one task."""
    compared_items = compared_in(result, task)
    mark = _mark(result)
    if (
        result.exploratory
        and len(compared_items) > 1
        and all(item.verdict is Verdict.NO_INFERENCE for item in compared_items)
    ):
        values = {group: _values(result, group, task) for group in result.design.groups}
        lost_counts = {group: _lost(result, group, task) for group in values}
        card = Card(f"{mark}{Verdict.NO_INFERENCE}", describe_too_few_runs(result, compared_items, values, lost_counts))
        return Verdicts((card,), compared_items[0].question.scope, where=heading(task))
    cards, shared_warnings = cards_of(compared_items, mark)
    return Verdicts(cards, compared_items[0].question.scope, shared_warnings, heading(task))


def _lost(result: Answer, group: str, task: str) -> int:
    """Return the number of lost runs of a group in one task; 0 for the mean over tasks."""
    observations = result.observations
    return int(observations.rows.lost[observations.rows.cells.rows_in(group, task)].sum())


def _values(result: Answer, group: str, task: str) -> list[float]:
    """Return the outcomes of a group in one task; none for the mean over tasks."""
    return list(result.observations.rows.outcomes(group, task).tolist())


def groups_table(result: Answer) -> Table:
    """Build the table of every group's outcomes."""
    rows = list[tuple[str, ...]]()
    counted_rows = f"{result.comparisons[0].question.row}s" if result.comparisons else "runs"
    for scale in result.scales:
        digits = digits_for(scale.margin)
        title = scale.outcome.title
        if scale.task:
            title = f"{scale.task}, {title}"
        for group in result.design.groups:
            values = _values(result, group, scale.task)
            lost_count = _lost(result, group, scale.task)
            least_words = number(min(values, default=None), digits)
            most_words = number(max(values, default=None), digits)
            rows.append(
                (group, title, str(len(values)), str(lost_count), mean_and_sd(values, digits), least_words, most_words)
            )
    return Table(
        f"All {counted_rows}, by group",
        ("group", "outcome", counted_rows, "lost", "mean (SD)", "least", "most"),
        tuple(rows),
        words=2,
    )


def _profiles(result: Answer) -> Table:
    """Build the table of the groups' scores over all tasks."""

    def cell(score: Aggregate) -> str:
        return f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f})"

    rows = tuple(
        (profile.group, cell(profile.interquartile_mean), cell(profile.optimality_gap), str(profile.runs))
        for profile in result.profiles
    )
    coverage = _coverage(min(profile.runs for profile in result.profiles))
    return Table(
        "Scores over all tasks",
        rows=rows,
        columns=("group", "interquartile mean", "optimality gap", "runs"),
        note=f"95 % bootstrap intervals, stratified by task; they are descriptive and decide nothing.{coverage}",
    )


def _coverage(least_runs: int) -> str:
    """Return a note's sentence on bootstrap intervals of few runs; "" if there are enough."""
    if least_runs < HONEST_FROM:
        return f" With fewer than {HONEST_FROM} runs per task, their coverage is below 95 %."
    return ""


def _improvements(result: Answer) -> Table:
    """Build the table of probabilities of improvement over all tasks."""
    rows = tuple(
        (f"{item.a} over {item.b}", f"{item.probability:.2f} ({item.low:.2f} to {item.high:.2f})", str(item.runs))
        for item in result.improvements
    )
    coverage = _coverage(min(item.runs for item in result.improvements))
    return Table(
        "Probability of improvement over all tasks",
        rows=rows,
        columns=("comparison", "probability", "runs"),
        note=(
            "The chance that a run of the first group is better than one of the second, equal ones one half, averaged "
            f"over tasks, with 95 % bootstrap intervals, stratified by task; it decides nothing.{coverage}"
        ),
    )
