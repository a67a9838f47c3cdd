"""The report of an experiment: its document, and the brief version that a command prints at its end."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from statistics import fmean

from esper_ab.analysis.analyse import task_and_budget
from esper_ab.contracts.wording import counted, shell_command, visible, visible_line
from esper_ab.plan.text import ALONE, question
from esper_ab.report.answer import basis, next_steps, reproduction
from esper_ab.report.content import Content
from esper_ab.report.document import (
    Commands,
    Document,
    Figures,
    Item,
    Legend,
    Node,
    Paragraphs,
    Points,
    Reasons,
    Section,
    Verdicts,
)
from esper_ab.report.figures.catalogue import drawn
from esper_ab.report.kinds import kind_of
from esper_ab.report.tables import comparison, groups, reward_audit, trust
from esper_ab.report.tables.comparison import cards_of
from esper_ab.report.text import next_step, paragraph, warned
from esper_ab.verdict.sentences import rule_sentence


def experiment_report(content: Content) -> Document:
    """Return the report of an experiment, before any layout; the first screen has everything but the folded sections.
    """
    plan = content.history.plan
    return Document(
        title=content.title, name=plan.experiment.name, question=question(plan), state=content.state,
        rest=shell_command("report", content.place, "--verbose"),
        footer=f"{content.state.sentence} Every number follows from events.jsonl.", interactive=True,
        nodes=(
            verdicts(content), *_alone(content),
            Section((Figures(partial(drawn, "answer", content)),)), Legend(content.groups),
            groups.results_table(content),
            Reasons(
                basis=Points("What it rests on", tuple(map(Item, basis(content)))),
                remarks=Points("Worth knowing", tuple(map(Item, content.analysis.remarks))),
                steps=Points("What to do next", next_steps(content)),
            ),
            *sections(content),
        ),
    )  # fmt: skip


def render_brief(content: Content, page: str) -> str:
    """Render the brief version: question, headlines with their caveats, first step, and path of the report.

    It has no newline at the end.
    """
    found = verdicts(content)
    said = [question(content.history.plan)]
    for card in found.cards:
        said += [card.headline, *(f"! {caveat}" for caveat in card.caveats)]
    said += [f"! {caveat}" for caveat in found.shared]
    said += [paragraph for node in _alone(content) for paragraph in node.paragraphs]
    lines = [*warned(content.state), *(paragraph(visible_line(one), "", hanging="  ") for one in said)]
    return visible("\n".join([*lines, f"report: {visible_line(page)}", *map(next_step, next_steps(content)[:1])]))


# --- verdicts --------------------------------------------------------------------------------------------------------


def verdicts(content: Content) -> Verdicts:
    """Return the verdicts in the order of the design; many comparisons are grouped by verdict."""
    cards, shared = cards_of(content.comparisons)
    return Verdicts(cards, task_and_budget(content.history), shared)


def _alone(content: Content) -> tuple[Paragraphs, ...]:
    """Return the answer of an experiment with one group: its mean, and that nothing is compared."""
    if content.design.comparisons or len(content.groups) != 1:
        return ()
    (group,), outcome = content.groups, content.design.outcome
    ends = [one.outcome for one in content.of_group(group) if one.outcome is not None]
    mean = f"{group}: {outcome.label} {content.design.value(fmean(ends))}, mean of {counted(len(ends), 'run')}. "
    return (Paragraphs((f"{mean if ends else ''}{ALONE}",)),)


# --- sections --------------------------------------------------------------------------------------------------------


_OF_GROUPS = groups.groups_table, groups.cross_table, groups.meaning_table
_OF_TRAINING = groups.learning_table, groups.heads_table, groups.ppo_table
_OF_TRUST = (
    trust.audit_table, trust.conduct_table, trust.noise_table, trust.layout_table, trust.incidents_table,
    trust.last_words_table,
)  # fmt: skip
_OF_SETTINGS = groups.differences_table, trust.facts_table, trust.versions_table


def sections(content: Content) -> list[Section]:
    """Return the sections in reading order."""
    compared, audited, plan = content.comparisons, content.analysis.reward_audit, content.history.plan
    rule = f"Rule, declared before the first run: {rule_sentence(content.design)}"
    nodes: dict[tuple[str, str], Iterable[Node]] = {
        ("decides", "What decides"): (
            comparison.overview_table(content.design, compared),
            *map(comparison.deciding_table, compared), comparison.outcomes_table(content),
            *((comparison.looks_table(compared),) if compared else ()), Paragraphs((plan.estimand, rule), "Exactly"),
        ),
        ("beside", "Statistics that decide nothing"): comparison.beside_tables(compared),
        ("groups", "Groups"): (build(content) for build in _OF_GROUPS),
        ("rewards", "What the rewards pay for"): reward_audit.tables(audited) if audited else (),
        ("training", "Training"): (*kind_of(content).training(content), *(build(content) for build in _OF_TRAINING)),
        ("trust", "Can it be trusted?"): (build(content) for build in _OF_TRUST),
        ("settings", "Settings"): (
            *(build(content) for build in _OF_SETTINGS),
            Points("Notes of the plan", tuple(map(Item, plan.notes)), card=True), Commands(reproduction(content)),
        ),
    }  # fmt: skip
    return [
        Section((Figures(partial(drawn, key, content)), *shown), title, key) for (key, title), shown in nodes.items()
    ]
