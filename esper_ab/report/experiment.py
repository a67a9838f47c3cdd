"""The report of an experiment: its document, and the brief that a terminal is left with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from esper_ab.contracts.wording import capital, named, visible, visible_line
from esper_ab.plan.text import question
from esper_ab.report.answer import basis, next_steps, reproduction
from esper_ab.report.content import Content
from esper_ab.report.document import (
    Card,
    Commands,
    Document,
    Either,
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
from esper_ab.report.tables.comparison import caveats_beside
from esper_ab.report.text import paragraph, warned
from esper_ab.verdict import sentences
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.headline import alike, headline_of


def experiment_report(content: Content) -> Document:
    """Return the report of an experiment, before any layout."""
    plan = content.history.plan
    rule = sentences.rule_sentence(content.design)
    exact = Paragraphs((plan.estimand, f"Rule, declared before the first run: {rule}"), "Exactly")
    notes = Points("Notes of the plan", tuple(map(Item, plan.notes)), card=True)
    commands = Commands(reproduction(content))
    return Document(
        title=content.title, signed="esper_ab: ", name=plan.experiment.name, question=question(plan),
        state=content.state, footer=f"{content.state.sentence} Every number follows from events.jsonl.",
        interactive=True,
        nodes=(
            verdicts(content), Figures(partial(drawn, "answer", content)), Legend(content.groups),
            Reasons(
                basis=Points("What it rests on", tuple(map(Item, basis(content)))),
                remarks=Points("What a reader would ask", tuple(map(Item, content.analysis.remarks))),
                steps=Points("What to do next", next_steps(content)),
            ),
            Either(text=(exact,)),
            *sections(content, exact, notes, commands),
            Either(text=(commands, notes)),
        ),
    )  # fmt: skip


def render_brief(content: Content, page: str) -> str:
    """Render what a terminal is left with: question, headlines, the first step, where the report is. No newline."""
    said = [question(content.history.plan), *(card.headline for card in verdicts(content).cards)]
    lines = [*warned(content.state), *(paragraph(visible_line(one), "", hanging="  ") for one in said)]
    lines.append(f"report: {visible_line(page)}")
    for step in next_steps(content)[:1]:
        lines.append(paragraph(f"next: {step.sentence}", "", hanging="  "))
        if step.command:
            lines.append(f"  {visible_line(step.command)}")
    return visible("\n".join(lines))


# --- verdicts --------------------------------------------------------------------------------------------------------
# Many comparisons are grouped.


_A, _B = "\0a", "\0b"  # placeholders for the names, which hold no such character
_BOTH = f"{_A} and {_B}"
_APART = 3  # up to so many comparisons are printed in full; the numbers of more are left to their table


def verdicts(content: Content) -> Verdicts:
    """Return the verdicts in the order of the design; many comparisons are grouped by verdict."""
    comparisons, shared = content.comparisons, _shared_caveats(content)
    if len(comparisons) <= _APART:
        return Verdicts(tuple(
            Card(
                item.verdict, item.headline, item.sentence,
                tuple(text for text in _caveats(item) if text not in shared),
            )
            for item in comparisons
        ), shared)  # fmt: skip
    folded: dict[tuple[str, ...], list[Comparison]] = {}
    for item in comparisons:
        folded.setdefault(alike(item) or (str(item.verdict), item.question.a, item.question.b), []).append(item)
    order = list(dict.fromkeys(item.verdict for item in comparisons))
    by_verdict = sorted(folded.values(), key=lambda items: order.index(items[0].verdict))
    return Verdicts(tuple(map(_folded, by_verdict)), shared)


def _shared_caveats(content: Content) -> tuple[str, ...]:
    """Return each caveat shared by several comparisons once; of many comparisons also those of some, with names."""
    comparisons = content.comparisons
    if len(comparisons) < 2:
        return ()
    if len(comparisons) <= _APART:
        first, *others = map(_caveats, comparisons)
        return tuple(text for text in first if all(text in other for other in others))
    conditions = dict.fromkeys(f"Conditional on {item.question.scope}." for item in comparisons)
    alike: dict[str, list[tuple[str, str]]] = {}
    for item in comparisons:
        nameless = replace(item, question=msgspec.structs.replace(item.question, a=_A, b=_B))
        for text in _caveats(nameless):
            alike.setdefault(text, []).append((item.question.a, item.question.b))
    found = (_said_of(text, pairs, len(comparisons)) for text, pairs in alike.items())
    return (*conditions, *(text for texts in found for text in texts))


def _said_of(text: str, pairs: list[tuple[str, str]], comparisons: int) -> list[str]:
    """Return the texts of a caveat with placeholders, for the pairs that it applies to."""
    if _A not in text and _B not in text:
        return [text if len(pairs) == comparisons else f"{capital(named(pairs))}: {text}"]
    rest = text.replace(_BOTH, "")
    if _A in rest or _B in rest:  # the caveat names one of the two
        return [text.replace(_A, a).replace(_B, b) for a, b in pairs]
    return [capital(text.replace(_BOTH, named(pairs)))]


def _caveats(item: Comparison) -> tuple[str, ...]:
    """Return the caveats of the verdict; those of statistics that decide nothing stand beside these."""
    elsewhere = caveats_beside(item)
    return tuple(text for text in item.caveats if text not in elsewhere)


def _folded(items: Sequence[Comparison]) -> Card:
    first = items[0]
    pairs = [(item.question.a, item.question.b) for item in items]
    return Card(first.verdict, first.headline if len(items) == 1 else headline_of(pairs, first))


# --- sections --------------------------------------------------------------------------------------------------------


_OF_GROUPS = groups.groups_table, groups.differences_table, groups.cross_table, groups.meaning_table
_OF_TRAINING = groups.learning_table, groups.heads_table, groups.ppo_table
_OF_TRUST = (
    trust.audit_table, trust.conduct_table, trust.noise_table, trust.layout_table, trust.incidents_table,
    trust.last_words_table, trust.facts_table,
)  # fmt: skip


def sections(content: Content, exact: Paragraphs, notes: Points, commands: Commands) -> list[Section]:
    """Return the sections in reading order. Text has `exact` before them; notes and commands behind them."""
    compared, audited = content.comparisons, content.analysis.reward_audit
    judgement, overview = kind_of(content).judgement(content), comparison.overview_table(content.design, compared)
    nodes: dict[tuple[str, str], Iterable[Node]] = {
        ("outcome", "Outcome"): (*judgement[:1], overview, *judgement[1:]),
        ("statistics", "Statistics"): (
            Either(page=(exact,)), *map(comparison.deciding_table, compared), comparison.outcomes_table(content),
            comparison.looks_table(compared), *comparison.beside_tables(compared),
        ),
        ("groups", "Groups"): (build(content) for build in _OF_GROUPS),
        ("rewards", "What the rewards pay for"): reward_audit.tables(audited) if audited else (),
        ("training", "Training"): (build(content) for build in _OF_TRAINING),
        ("trust", "Can it be trusted?"): (*(build(content) for build in _OF_TRUST), Either(page=(notes,))),
        ("again", "The same again"): (trust.versions_table(content), Either(page=(commands,))),
    }  # fmt: skip
    return [
        Section((Figures(partial(drawn, key, content)), *shown), title, key, opened=key == "outcome")
        for (key, title), shown in nodes.items()
    ]
