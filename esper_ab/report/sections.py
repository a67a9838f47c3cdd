"""The sections of a report after its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from esper_ab.report.content import Content
from esper_ab.report.document import Commands, Figures, Item, Node, Paragraphs, Points, Section
from esper_ab.report.figures.catalogue import drawn
from esper_ab.report.kind import tables_of
from esper_ab.report.reproduction import reproduction
from esper_ab.report.tables import comparison, groups, learning, reward_audit, trust
from esper_ab.report.tables.table import Table
from esper_ab.verdict.rule_sentence import rule_sentence

_GROUPS = (groups.groups_table, groups.cross_table, groups.meaning_table)
_TRAINING = (learning.learning_table, groups.heads_table, groups.ppo_table)
_TRUST = (
    trust.audit_table,
    trust.conduct_table,
    trust.noise_table,
    trust.layout_table,
    trust.incidents_table,
    trust.last_words_table,
)
_SETTINGS = (groups.differences_table, trust.facts_table, trust.versions_table)


def sections(content: Content) -> list[Section]:
    """Return the sections in reading order."""
    return [
        _section(content, "decides", "What decides", _deciding(content)),
        _section(
            content, "beside", "Statistics that decide nothing", tuple(comparison.beside_tables(content.comparisons))
        ),
        _section(content, "groups", "Groups", _built(_GROUPS, content)),
        _section(content, "rewards", "What the rewards pay for", _rewards(content)),
        _section(content, "training", "Training", (*tables_of(content).training(content), *_built(_TRAINING, content))),
        _section(content, "trust", "Can it be trusted?", _built(_TRUST, content)),
        _section(content, "settings", "Settings", (*_built(_SETTINGS, content), *_notes_and_commands(content))),
    ]


def _section(content: Content, key: str, title: str, nodes: Sequence[Node]) -> Section:
    """Build a section: the figures that the catalogue has for `key`, then `nodes`."""
    figures = Figures(partial(drawn, key, content))
    return Section((figures, *nodes), title, key)


def _built(tables: Sequence[Callable[[Content], Table]], content: Content) -> list[Table]:
    return [table(content) for table in tables]


def _deciding(content: Content) -> tuple[Node, ...]:
    nodes: list[Node] = [comparison.overview_table(content.design, content.comparisons)]
    nodes += map(comparison.deciding_table, content.comparisons)
    nodes.append(comparison.outcomes_table(content))
    if content.comparisons:
        nodes.append(comparison.looks_table(content.comparisons))
    rule = f"Rule, declared before the first run: {rule_sentence(content.design)}"
    nodes.append(Paragraphs((content.history.plan.estimand, rule), "Exactly"))
    return tuple(nodes)


def _rewards(content: Content) -> tuple[Table, ...]:
    audited = content.analysis.reward_audit
    if audited is None:
        return ()
    return reward_audit.tables(audited)


def _notes_and_commands(content: Content) -> Iterator[Node]:
    notes = map(Item, content.history.plan.notes)
    yield Points("Notes of the plan", tuple(notes), card=True)
    yield Commands(reproduction(content))
