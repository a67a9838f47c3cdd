"""The table of what limits the learning has the rows that mean something for the policies that there are."""

from __future__ import annotations

import msgspec
from support.journals import Synthetic

from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.tables.groups import learning_table


def labels(heads):
    """The labels of the rows, where updates report these heads; None: those that they do report."""
    events = []
    for event in Synthetic(replicates=2).events():
        if isinstance(event, EpisodeRecorded) and heads is not None:
            ppo = msgspec.structs.replace(event.record.ppo, heads=heads)
            event = msgspec.structs.replace(event, record=msgspec.structs.replace(event.record, ppo=ppo))
        events.append(event)
    return [row[0] for row in learning_table(content(fold(events))).rows]


def test_a_policy_with_heads_has_a_row_of_the_first_one_and_a_continuous_one_has_none():
    with_heads = labels(None)
    assert "entropy of the op head, % of a random choice" in with_heads
    assert labels({}) == [label for label in with_heads if not label.startswith("entropy of the ")]
