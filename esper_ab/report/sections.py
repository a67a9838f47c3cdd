"""The sections of a report after its verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from esper_ab.report.answer import reproduction
from esper_ab.report.content import Content
from esper_ab.report.document import (
    Commands,
    Figures,
    Item,
    Node,
    Paragraphs,
    Points,
    Section,
)
from esper_ab.report.figures.catalogue import drawn
from esper_ab.report.kinds import kind_of
from esper_ab.report.tables import comparison, groups, learning, reward_audit, trust
from esper_ab.verdict.sentences import rule_sentence

_OF_GROUPS = groups.groups_table, groups.cross_table, groups.meaning_table
_OF_TRAINING = learning.learning_table, groups.heads_table, groups.ppo_table
_OF_TRUST = (
    trust.audit_table,
    trust.conduct_table,
    trust.noise_table,
    trust.layout_table,
    trust.incidents_table,
    trust.last_words_table,
)
_OF_SETTINGS = groups.differences_table, trust.facts_table, trust.versions_table


def sections(content: Content) -> list[Section]:
    """Return the sections in reading order."""
    compared = content.comparisons
    audited = content.analysis.reward_audit
    plan = content.history.plan
    rule = f"Rule, declared before the first run: {rule_sentence(content.design)}"
    nodes: dict[tuple[str, str], Iterable[Node]] = {
        ("decides", "What decides"): (
            comparison.overview_table(content.design, compared),
            *map(comparison.deciding_table, compared),
            comparison.outcomes_table(content),
            *((comparison.looks_table(compared),) if compared else ()),
            Paragraphs((plan.estimand, rule), "Exactly"),
        ),
        ("beside", "Statistics that decide nothing"): comparison.beside_tables(compared),
        ("groups", "Groups"): (build(content) for build in _OF_GROUPS),
        ("rewards", "What the rewards pay for"): reward_audit.tables(audited) if audited else (),
        ("training", "Training"): (*kind_of(content).training(content), *(build(content) for build in _OF_TRAINING)),
        ("trust", "Can it be trusted?"): (build(content) for build in _OF_TRUST),
        ("settings", "Settings"): (
            *(build(content) for build in _OF_SETTINGS),
            Points("Notes of the plan", tuple(map(Item, plan.notes)), card=True),
            Commands(reproduction(content)),
        ),
    }
    return [
        Section((Figures(partial(drawn, key, content)), *shown), title, key) for (key, title), shown in nodes.items()
    ]
