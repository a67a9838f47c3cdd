"""Pathologies of PPO updates: listed for one record, and counted in columns."""

import msgspec
from support.journals.synthetic import Synthetic

from esper_ab.analysis.pathologies import count_pathologies, pathologies
from esper_ab.journal.columns import Columns
from esper_ab.journal.events import EpisodeRecorded
from workers.kinds.growth.measures import MEASURES


def test_pathologies_counted_in_columns_equal_those_of_the_records():
    events = Synthetic(episodes=12).events()
    records = [event.record for event in events if isinstance(event, EpisodeRecorded)]
    assert records
    changes = [
        {"ratio_max": 12.0},
        {"entropy": 0.0},
        {"grad_norm": None},
        {"clip_fraction": 0.5},
        {"policy_loss": None},
        {"first_ratio_error": 0.1, "entropy": None},
        {"entropy": -1.0, "heads": {}},
        {"explained_variance": 0.0, "value_loss": 0.5},
        {},
    ]
    columns = Columns(MEASURES.names)
    counts = {}
    for index, record in enumerate(records[: 2 * len(changes)]):
        ppo = msgspec.structs.replace(record.ppo, **changes[index % len(changes)])
        changed_record = msgspec.structs.replace(record, episode=index, ppo=ppo)
        columns.add(changed_record)
        for kind in pathologies(changed_record):
            counts[kind] = counts.get(kind, 0) + 1
    assert count_pathologies(columns) == counts
    assert len(counts) == 6
