"""Shares of stages in the figures of growth."""

import msgspec
import pytest
from support.journals.ready_journals import records_of
from support.journals.synthetic import Synthetic

from esper_ab.journal.fold import fold
from esper_ab.kinds.growth.figures import shares


def test_the_share_of_slots_per_stage_follows_from_their_events():
    """One slot of three is germinated at 2, trains from 5 on and is fossilised at 9; the other two stay empty."""
    run = fold(Synthetic(replicates=2, episodes=1, n_envs=1).events()).of_group("shaped")[0]
    record = records_of(run)[0]
    template = record.seed_events[0]
    events = tuple(
        msgspec.structs.replace(template, step=step, stage=stage)
        for step, stage in ((2, "GERMINATED"), (5, "TRAINING"), (5, "BLENDING"), (9, "FOSSILIZED"))
    )
    run.episodes[0] = msgspec.structs.replace(record, seed_events=events)
    fossilised, _, blending, training, germinated_shares, _ = shares(
        [run], ("early", "mid", "late"), [1, 2, 4, 5, 8, 9, 25]
    )
    third_share = pytest.approx(100 / 3)
    assert germinated_shares == [0, third_share, third_share, 0, 0, 0, 0]
    assert training == [0] * 7
    assert blending == [0, 0, 0, third_share, third_share, 0, 0]
    assert fossilised == [0, 0, 0, 0, 0, third_share, third_share]
