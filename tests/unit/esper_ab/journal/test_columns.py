"""Columns of a run's episodes, and its records: what was told, in whatever order and wherever it is kept."""

import math
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace
from support.journals.ready_journals import one_replicate, write

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.records import HeadUse
from esper_ab.journal.columns import NAMES, Columns
from esper_ab.journal.episodes import Episodes
from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.line import event_of
from esper_ab.journal.lock import JOURNAL_NAME
from workers.kinds.growth.measures import MEASURES

MEASURED = MEASURES.names
BASE = next(event.record for event in one_replicate() if isinstance(event, EpisodeRecorded))
SOME = st.none() | st.floats(-1e6, 1e6)
EPISODES = st.builds(
    lambda **change: replace(BASE.envs[0], **change),
    outcome=SOME,
    reward_sum=SOME,
    steps=st.integers(0, 25),
    failed=st.booleans(),
    measures=st.tuples(*[SOME for _ in MEASURED]).map(lambda values: dict(zip(MEASURED, values, strict=True))),
)
HEADS = st.dictionaries(st.sampled_from("xyz"), st.builds(HeadUse, entropy=SOME, learnable=st.floats(0, 1)), max_size=3)
UPDATES = st.none() | st.builds(
    lambda **change: replace(BASE.ppo, **change), entropy=SOME, stopped_by_kl=st.booleans(), heads=HEADS
)
PLAYED = st.tuples(st.lists(EPISODES, min_size=1, max_size=3), UPDATES)


def records_of(played):
    """Episodes from 0 on; their digests are all different."""
    return [
        replace(BASE, episode=episode, envs=tuple(envs), ppo=update, digest=str(episode))
        for episode, (envs, update) in enumerate(played)
    ]


def filled(records):
    columns = Columns(MEASURED)
    for record in records:
        columns.add(record)
    return columns


@settings(max_examples=40)
@given(st.lists(PLAYED, max_size=12))
def test_columns_hold_what_the_records_say(played):
    records = records_of(played)
    columns = Columns(MEASURED)
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


def mean_known(values):
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else math.nan


def by_hand(record):
    """One record's numbers; NaN for those that are not there."""
    found = dict.fromkeys(NAMES, math.nan) | {"envs": len(record.envs), "learns": record.ppo is not None}
    found |= {"total_s": record.timing.total_s, "steps": sum(env.steps for env in record.envs)}
    found["failed_steps"] = sum(env.steps for env in record.envs if env.failed)
    found["failed"] = sum(env.failed for env in record.envs)
    found["outcome"] = mean_known([env.outcome for env in record.envs])
    found["reward"] = mean_known([env.reward_sum for env in record.envs])
    for name, value in asdict(record.ppo).items() if record.ppo else ():
        if name in NAMES:
            found[name] = math.nan if value is None else value
    return found


@settings(max_examples=40)
@given(st.data())
def test_the_last_record_of_an_episode_counts_whatever_the_order(data):
    """A worker that was restarted may report an episode again, and later ones may be there already."""
    again = data.draw(st.lists(st.tuples(st.integers(0, 7), PLAYED), max_size=20))
    told = [
        replace(record, episode=episode, digest=str(place))
        for place, ((episode, _), record) in enumerate(zip(again, records_of([one for _, one in again]), strict=True))
    ]
    last = {record.episode: record for record in told}
    columns = filled(told)
    in_order = filled([last[episode] for episode in sorted(last)])
    assert columns.episodes.tolist() == sorted(last)
    assert columns.newest == max(last, default=-1)
    assert columns.digests == in_order.digests
    for name in NAMES:
        assert columns.of(name).tobytes() == in_order.of(name).tobytes()


def test_heads_are_in_the_order_in_which_they_were_first_used():
    use = HeadUse(entropy=0.5, learnable=1.0)
    updates = [replace(BASE.ppo, heads=dict.fromkeys(names, use)) for names in ("yx", "xz", "zy")]
    columns = filled(records_of([(BASE.envs, one) for one in (None, *updates)]))
    assert columns.heads == ("y", "x", "z")
    assert [math.isnan(value) for value in columns.head("z")[0]] == [True, True, False, False]


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_record_fits_whose_environments_all_have_the_declared_measures_in_their_order(where):
    columns = Columns(MEASURED)
    measures = BASE.envs[0].measures
    assert columns.fits(BASE)
    assert not columns.fits(replace(BASE, envs=()))
    for other in (dict(reversed(measures.items())), dict(list(measures.items())[1:]), {**measures, "more": 1.0}, {}):
        envs = list(BASE.envs)
        envs[where] = replace(envs[where], measures=other)
        assert not columns.fits(replace(BASE, envs=tuple(envs)))


# A run's records, in memory and in the journal's file: one mapping, whichever of them is where.


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return write(tmp_path_factory.mktemp("journal") / "run", one_replicate()) / JOURNAL_NAME


def there(journal):
    """The episodes of shaped/0 in the journal: where their lines begin, and what they say."""
    found = {}
    at = 0
    for line in journal.read_bytes().splitlines(keepends=True):
        event = event_of(line)
        if isinstance(event, EpisodeRecorded) and event.record.run.name == "shaped/0":
            found[event.record.episode] = at, event.record
        at += len(line)
    return found


def left(journal, places):
    """The episodes whose records lie at these places of a journal."""
    into = Episodes()
    for episode, (at, _) in sorted(places.items()):
        into.leave_in(journal, episode, at)
    return into


@given(st.sets(st.integers(0, 7)), st.dictionaries(st.integers(-1, 9), st.integers(0, 99)))
def test_records_on_disk_and_in_memory_are_one_mapping(journal, on_disk, in_memory):
    """What is told last counts."""
    places = {episode: place for episode, place in there(journal).items() if episode in on_disk}
    here = {episode: replace(BASE, digest=f"{digest}") for episode, digest in in_memory.items()}
    episodes = left(journal, places)
    for episode, one in here.items():
        episodes[episode] = one
    wanted = {episode: record for episode, (_, record) in places.items()} | here
    assert dict(episodes) == wanted
    assert len(episodes) == len(wanted)
    assert sorted(episodes) == sorted(wanted)
    for absent in set(range(-2, 11)) - set(wanted):
        assert absent not in episodes
        with pytest.raises(KeyError, match=str(absent)):
            episodes[absent]


def test_a_line_that_was_damaged_and_a_journal_that_was_replaced_meanwhile_are_told(tmp_path, journal):
    """Replaced by another one that is intact, where something else stands at the place."""
    path = tmp_path / JOURNAL_NAME
    data = journal.read_bytes()
    places = there(journal)
    path.write_bytes(data)
    episodes = left(path, places)
    (at, _) = places[3]
    path.write_bytes(data[: at + 200] + b"\0" + data[at + 201 :])
    number = data[:at].count(b"\n") + 1
    with pytest.raises(JournalError, match=f"line {number}: its CRC does not match its contents"):
        episodes[3]
    assert episodes[2] == places[2][1]
    path.write_bytes(data.splitlines(keepends=True)[0])
    with pytest.raises(JournalError) as told:
        episodes[3]
    assert str(told.value) == f"{path} was changed while it was read: an episode is no longer where it was"
