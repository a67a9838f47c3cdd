"""A large journal, read for its numbers by several processes, says what the reading line by line says."""

from __future__ import annotations

import msgspec
import pytest
from support.journals import Synthetic, failed_run, one_replicate, three_groups, write

from esper_ab.analysis.pathologies import count_pathologies, pathologies
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.errors import JournalError
from esper_ab.journal import chunk
from esper_ab.journal.columns import NAMES, Columns
from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.load import load

NEVER = 1 << 60


@pytest.fixture(params=[2_000, 50_000, 32 << 20])
def chunk_bytes(request, monkeypatch):
    """Many stretches, some and one; the smallest are of a line or two."""
    monkeypatch.setattr(chunk.stretches, "__defaults__", (request.param,))


def numbers(columns: Columns) -> tuple:
    """Everything, so that NaN is equal to NaN."""
    arrays = [columns.episodes, *(columns.of(name) for name in NAMES)]
    heads = {name: tuple(one.tobytes() for one in columns.head(name)) for name in columns.heads}
    return [one.tobytes() for one in arrays], columns.digests, columns.host_params, heads, columns.heads


@pytest.mark.parametrize("events", [one_replicate, three_groups, failed_run])
@pytest.mark.usefixtures("chunk_bytes")
def test_stretches_give_the_same_history(tmp_path, events):
    run_dir = write(tmp_path / "run", events())
    simple, fast = load(run_dir, NEVER), load(run_dir, 0)
    assert (fast.lines, fast.wall_time, fast.torn_bytes) == (simple.lines, simple.wall_time, simple.torn_bytes)
    assert fast.history == simple.history
    for name, run in simple.history.runs.items():
        assert numbers(fast.history.runs[name].columns) == numbers(run.columns)
        assert fast.history.runs[name].curve() == run.curve()


@pytest.mark.usefixtures("chunk_bytes")
def test_a_torn_tail_is_counted_in_both(tmp_path):
    run_dir = write(tmp_path / "run", one_replicate())
    path = run_dir / JOURNAL_NAME
    path.write_bytes(path.read_bytes()[:-700])
    simple, fast = load(run_dir, NEVER), load(run_dir, 0)
    assert fast.torn_bytes == simple.torn_bytes > 0
    assert fast.history == simple.history


@pytest.mark.parametrize(("what", "by"), [(b'"steps":25', b'"steps":24'), (b'"event":', b'"event" :')])
@pytest.mark.usefixtures("chunk_bytes")
def test_damage_is_told_as_by_the_reading_line_by_line(tmp_path, what, by):
    run_dir = write(tmp_path / "run", one_replicate())
    path = run_dir / JOURNAL_NAME
    data = path.read_bytes()
    at = data.rindex(what, 0, data.rindex(b'"kind":"episode"') + 2_000)
    path.write_bytes(data[:at] + by + data[at + len(what) :])
    with pytest.raises(JournalError) as simple:
        load(run_dir, NEVER)
    with pytest.raises(JournalError) as fast:
        load(run_dir, 0)
    assert str(fast.value) == str(simple.value)


@pytest.mark.usefixtures("chunk_bytes")
def test_a_line_that_is_gone_is_noticed(tmp_path):
    run_dir = write(tmp_path / "run", one_replicate())
    path = run_dir / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10] + lines[11:]))
    with pytest.raises(JournalError, match="line 11"):
        load(run_dir, 0)


def test_episodes_that_come_out_of_order_are_sorted_and_the_last_word_counts():
    records = [event.record for event in Synthetic().events() if isinstance(event, EpisodeRecorded)]
    mine = [record for record in records if record.run == records[0].run]

    def filled(order: list[EpisodeRecord]) -> Columns:
        columns = Columns()
        for record in order:
            columns.add(record)
        return columns

    assert numbers(filled([mine[5], mine[2], *mine, mine[1]])) == numbers(filled(mine))


def test_pathologies_are_counted_as_they_are_told():
    events = Synthetic(episodes=12).events()
    records = [event.record for event in events if isinstance(event, EpisodeRecorded)]
    assert records
    changes = [
        {"ratio_max": 6.0}, {"entropy": 0.0}, {"grad_norm": None}, {"clip_fraction": 0.5}, {"policy_loss": None},
        {"first_ratio_error": 0.1, "entropy": None}, {"explained_variance": 0.0, "value_loss": 0.5}, {},
    ]  # fmt: skip
    columns, counts = Columns(), {}
    for index, record in enumerate(records[: 2 * len(changes)]):
        ppo = msgspec.structs.replace(record.ppo, **changes[index % len(changes)])
        changed = msgspec.structs.replace(record, episode=index, ppo=ppo)
        columns.add(changed)
        for kind in pathologies(changed):
            counts[kind] = counts.get(kind, 0) + 1
    assert count_pathologies(columns) == counts
    assert len(counts) == 6
