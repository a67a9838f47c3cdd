"""Columns of a run's episodes: what the records say, in whatever order they come and however they are joined."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.journals import one_replicate

from esper_ab.contracts.records import EpisodeRecord, HeadUse, PPOUpdate
from esper_ab.journal.columns import NAMES, Columns
from esper_ab.journal.events import EpisodeRecorded
from workers.growth.measures import MEASURES

MEASURED = MEASURES.names
BASE = next(event.record for event in one_replicate() if isinstance(event, EpisodeRecorded))
SOME = st.none() | st.floats(-1e6, 1e6)
EPISODES = st.builds(
    lambda **change: msgspec.structs.replace(BASE.envs[0], **change),
    outcome=SOME, reward_sum=SOME, steps=st.integers(0, 25), failed=st.booleans(),
    measures=st.tuples(*[SOME for _ in MEASURED]).map(lambda values: dict(zip(MEASURED, values, strict=True))),
)  # fmt: skip
HEADS = st.dictionaries(
    st.sampled_from("xyz"), st.builds(HeadUse, entropy=SOME, learnable=st.floats(0, 1)), max_size=3
)
UPDATES = st.none() | st.builds(
    lambda **change: msgspec.structs.replace(BASE.ppo, **change), entropy=SOME, stopped_by_kl=st.booleans(), heads=HEADS
)
PLAYED = st.tuples(st.lists(EPISODES, min_size=1, max_size=3), UPDATES)


def records_of(played: Sequence[tuple]) -> list[EpisodeRecord]:
    """Episodes from 0 on; their digests are all different."""
    return [
        msgspec.structs.replace(BASE, episode=episode, envs=tuple(envs), ppo=update, digest=str(episode))
        for episode, (envs, update) in enumerate(played)
    ]


def filled(records: Sequence[EpisodeRecord]) -> Columns:
    columns = Columns(MEASURED)
    for record in records:
        columns.add(record)
    return columns


@settings(max_examples=40)
@given(st.lists(PLAYED, max_size=12))
def test_columns_hold_what_the_records_say(played):
    records, columns = records_of(played), Columns(MEASURED)
    for count, record in enumerate(records):
        assert len(columns) == columns.newest + 1 == count
        columns.add(record)
    told = [by_hand(record) for record in records]
    for name in NAMES:
        assert columns.of(name).tobytes() == array("d", [one[name] for one in told]).tobytes()
        assert columns.known(name) == [one[name] for one in told if not math.isnan(one[name])]
    assert columns.digests == [record.digest for record in records]
    for name in MEASURED:
        found = [mean_known([env.measures[name] for env in record.envs]) for record in records]
        assert columns.measure(name).tobytes() == array("d", found).tobytes()
    for head in columns.heads:
        uses = [(record.ppo.heads if record.ppo else {}).get(head) for record in records]
        for key, found in zip(("entropy", "learnable"), columns.head(head), strict=True):
            wanted = [math.nan if use is None or (x := getattr(use, key)) is None else x for use in uses]
            assert found.tobytes() == array("d", wanted).tobytes()
    assert {*columns.heads} == {head for record in records if record.ppo for head in record.ppo.heads}


def mean_known(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else math.nan


def by_hand(record: EpisodeRecord) -> dict[str, float]:
    """One record's numbers; NaN for those that are not there."""
    eval_episodes = record.envs
    found = dict.fromkeys(NAMES, math.nan) | {"envs": len(eval_episodes), "learns": record.ppo is not None}
    found |= {"total_s": record.timing.total_s, "steps": sum(played.steps for played in eval_episodes)}
    found["failed_steps"] = sum(played.steps for played in eval_episodes if played.failed)
    found["failed"] = sum(played.failed for played in eval_episodes)
    if eval_episodes:
        found["outcome"] = mean_known([played.outcome for played in eval_episodes])
        found["reward"] = mean_known([played.reward_sum for played in eval_episodes])
    for name, value in msgspec.structs.asdict(record.ppo).items() if record.ppo else ():
        if name in NAMES:
            found[name] = math.nan if value is None else value
    return found


@settings(max_examples=40)
@given(st.data())
def test_the_last_record_of_an_episode_counts_whatever_the_order(data):
    """A worker that was restarted may report an episode again, and later ones may be there already."""
    again = data.draw(st.lists(st.tuples(st.integers(0, 7), PLAYED), max_size=20))
    told = [
        msgspec.structs.replace(record, episode=episode, digest=str(place))
        for place, ((episode, _), record) in enumerate(zip(again, records_of([one for _, one in again]), strict=True))
    ]
    last = {record.episode: record for record in told}
    columns, in_order = filled(told), filled([last[episode] for episode in sorted(last)])
    assert columns.episodes.tolist() == sorted(last)
    assert columns.newest == max(last, default=-1)
    assert columns.digests == in_order.digests
    for name in NAMES:
        assert columns.of(name).tobytes() == in_order.of(name).tobytes()


def test_heads_are_in_the_order_in_which_they_were_first_used():
    def update(*names: str) -> PPOUpdate:
        heads = {name: HeadUse(entropy=0.5, learnable=1.0) for name in names}
        return msgspec.structs.replace(BASE.ppo, heads=heads)

    updates = (None, update("y", "x"), update("x", "z"), update("z", "y"))
    columns = filled(records_of([(BASE.envs, one) for one in updates]))
    assert columns.heads == ("y", "x", "z")
    assert [math.isnan(value) for value in columns.head("z")[0]] == [True, True, False, False]


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_record_fits_whose_environments_all_have_the_declared_measures_in_their_order(where):
    columns, measures = Columns(MEASURED), BASE.envs[0].measures
    assert columns.fits(BASE)
    assert not columns.fits(msgspec.structs.replace(BASE, envs=()))
    for other in (dict(reversed(measures.items())), dict(list(measures.items())[1:]), {**measures, "more": 1.0}, {}):
        envs = list(BASE.envs)
        envs[where] = msgspec.structs.replace(envs[where], measures=other)
        assert not columns.fits(msgspec.structs.replace(BASE, envs=tuple(envs)))
