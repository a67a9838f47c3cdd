"""Columns and records of a run's episodes, in any order of arrival, in memory and on disk."""

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


def records_of(rollouts):
    """Return records of episodes 0, 1, ... with distinct digests."""
    return [
        replace(BASE, episode=episode, envs=tuple(envs), ppo=update, digest=str(episode))
        for episode, (envs, update) in enumerate(rollouts)
    ]


def fill_columns(records):
    columns = Columns(MEASURED)
    for record in records:
        columns.add(record)
    return columns


@settings(max_examples=40)
@given(st.lists(PLAYED, max_size=12))
def test_columns_equal_the_numbers_of_the_records(rollouts):
    records = records_of(rollouts)
    columns = Columns(MEASURED)
    for count, record in enumerate(records):
        assert len(columns) == columns.newest + 1 == count
        columns.add(record)
    numbers = [numbers_of(record) for record in records]
    for name in NAMES:
        assert columns.of(name).tobytes() == array("d", [row[name] for row in numbers]).tobytes()
        assert columns.known(name) == [row[name] for row in numbers if not math.isnan(row[name])]
    assert columns.digests == [record.digest for record in records]
    for name in MEASURED:
        means = [mean_known([env.measures[name] for env in record.envs]) for record in records]
        assert columns.measure(name).tobytes() == array("d", means).tobytes()
    for head in columns.heads:
        head_uses = [(record.ppo.heads if record.ppo else {}).get(head) for record in records]
        for key, column in zip(("entropy", "learnable"), columns.head(head), strict=True):
            expected = [math.nan if use is None or (x := getattr(use, key)) is None else x for use in head_uses]
            assert column.tobytes() == array("d", expected).tobytes()
    assert {*columns.heads} == {head for record in records if record.ppo for head in record.ppo.heads}


def mean_known(values):
    present_values = [value for value in values if value is not None]
    return math.fsum(present_values) / len(present_values) if present_values else math.nan


def numbers_of(record):
    """Return one record's numbers, with NaN for missing ones."""
    numbers = dict.fromkeys(NAMES, math.nan) | {"envs": len(record.envs), "learns": record.ppo is not None}
    numbers |= {"total_s": record.timing.total_s, "steps": sum(env.steps for env in record.envs)}
    numbers["failed_steps"] = sum(env.steps for env in record.envs if env.failed)
    numbers["failed"] = sum(env.failed for env in record.envs)
    numbers["outcome"] = mean_known([env.outcome for env in record.envs])
    numbers["reward"] = mean_known([env.reward_sum for env in record.envs])
    for name, value in asdict(record.ppo).items() if record.ppo else ():
        if name in NAMES:
            numbers[name] = math.nan if value is None else value
    return numbers


@settings(max_examples=40)
@given(st.data())
def test_the_last_record_of_an_episode_replaces_earlier_records(data):
    """A restarted worker may repeat an episode after later ones were recorded."""
    drawn_records = data.draw(st.lists(st.tuples(st.integers(0, 7), PLAYED), max_size=20))
    reported_records = [
        replace(record, episode=episode, digest=str(number))
        for number, ((episode, _), record) in enumerate(
            zip(drawn_records, records_of([rollout for _, rollout in drawn_records]), strict=True)
        )
    ]
    last_records = {record.episode: record for record in reported_records}
    columns = fill_columns(reported_records)
    ordered_columns = fill_columns([last_records[episode] for episode in sorted(last_records)])
    assert columns.episodes.tolist() == sorted(last_records)
    assert columns.newest == max(last_records, default=-1)
    assert columns.digests == ordered_columns.digests
    for name in NAMES:
        assert columns.of(name).tobytes() == ordered_columns.of(name).tobytes()


def test_policy_heads_are_ordered_by_their_first_use():
    use = HeadUse(entropy=0.5, learnable=1.0)
    updates = [replace(BASE.ppo, heads=dict.fromkeys(names, use)) for names in ("yx", "xz", "zy")]
    columns = fill_columns(records_of([(BASE.envs, update) for update in (None, *updates)]))
    assert columns.heads == ("y", "x", "z")
    assert [math.isnan(value) for value in columns.head("z")[0]] == [True, True, False, False]


@pytest.mark.parametrize("changed_env", [0, 1, 2])
def test_a_record_must_have_the_declared_measures_in_order(changed_env):
    columns = Columns(MEASURED)
    measures = BASE.envs[0].measures
    assert columns.fits(BASE)
    assert not columns.fits(replace(BASE, envs=()))
    for wrong_measures in (
        dict(reversed(measures.items())),
        dict(list(measures.items())[1:]),
        {**measures, "more": 1.0},
        {},
    ):
        envs = list(BASE.envs)
        envs[changed_env] = replace(envs[changed_env], measures=wrong_measures)
        assert not columns.fits(replace(BASE, envs=tuple(envs)))


# A run's records in memory and in the journal's file form one mapping.


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return write(tmp_path_factory.mktemp("journal") / "run", one_replicate()) / JOURNAL_NAME


def read_episodes(journal):
    """Return offset and record of each episode of shaped/0 in the journal."""
    episodes = {}
    offset = 0
    for line in journal.read_bytes().splitlines(keepends=True):
        event = event_of(line)
        if isinstance(event, EpisodeRecorded) and event.record.run.name == "shaped/0":
            episodes[event.record.episode] = offset, event.record
        offset += len(line)
    return episodes


def episodes_on_disk(journal, places_by_episode):
    """Return `Episodes` with the records at these offsets of a journal."""
    episodes = Episodes()
    for episode, (offset, _) in sorted(places_by_episode.items()):
        episodes.leave_in(journal, episode, offset)
    return episodes


@given(st.sets(st.integers(0, 7)), st.dictionaries(st.integers(-1, 9), st.integers(0, 99)))
def test_episodes_on_disk_and_in_memory_form_one_mapping(journal, disk_episodes, memory_episodes):
    """A record that is set later replaces the one on disk."""
    places_by_episode = {
        episode: place for episode, place in read_episodes(journal).items() if episode in disk_episodes
    }
    kept_in_memory = {episode: replace(BASE, digest=f"{digest}") for episode, digest in memory_episodes.items()}
    episodes = episodes_on_disk(journal, places_by_episode)
    for episode, record in kept_in_memory.items():
        episodes[episode] = record
    expected = {episode: record for episode, (_, record) in places_by_episode.items()} | kept_in_memory
    assert dict(episodes) == expected
    assert len(episodes) == len(expected)
    assert sorted(episodes) == sorted(expected)
    for absent_episode in set(range(-2, 11)) - set(expected):
        assert absent_episode not in episodes
        with pytest.raises(KeyError, match=str(absent_episode)):
            episodes[absent_episode]


def test_reading_an_episode_reports_a_damaged_or_replaced_journal(tmp_path, journal):
    """The replacement is intact, but has another line at the offset."""
    path = tmp_path / JOURNAL_NAME
    data = journal.read_bytes()
    places_by_episode = read_episodes(journal)
    path.write_bytes(data)
    episodes = episodes_on_disk(path, places_by_episode)
    (offset, _) = places_by_episode[3]
    path.write_bytes(data[: offset + 200] + b"\0" + data[offset + 201 :])
    number = data[:offset].count(b"\n") + 1
    with pytest.raises(JournalError, match=f"line {number}: its CRC does not match its contents"):
        episodes[3]
    assert episodes[2] == places_by_episode[2][1]
    path.write_bytes(data.splitlines(keepends=True)[0])
    with pytest.raises(JournalError) as error:
        episodes[3]
    assert str(error.value) == f"{path} was changed while it was read: an episode is no longer where it was"
