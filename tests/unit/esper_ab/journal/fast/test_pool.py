"""A large journal, read for its numbers by several processes, says what the reading line by line says."""

from __future__ import annotations

import pickle
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.column_numbers import numbers
from support.journals import failed_run, one_replicate, three_groups, write

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.records import Checkpoint, Moments
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    ExperimentContinued,
    Incident,
    MilestoneReleased,
    PlanExtended,
    RunEvaluated,
    WorkerStarted,
)
from esper_ab.journal.fast import pool
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.fold import fold
from esper_ab.journal.load import load
from esper_ab.plan.blocks import extend
from esper_ab.report.content import content, render_verdict
from esper_ab.report.page import render_page
from esper_ab.report.text import render_text

NEVER = 1 << 60


def troubled() -> list[AnyEvent]:
    """Three groups and nearly everything that can happen: missing numbers, deaths, a pair lost, more blocks."""
    events: list[AnyEvent] = []
    for event in three_groups():
        if isinstance(event, RunEvaluated) and event.record.run.name in ("simplified/2", "shaped/2", "wait/2"):
            category = "dropped_pair" if event.record.run.group_id == "simplified" else "cancelled"
            events.append(
                Incident(category=category, run_name=event.record.run.name, episode=8, detail="worker died twice")
            )
        else:
            events.append(_marked(event))
        if isinstance(event, EpisodeRecorded) and event.record.episode == 3 and event.record.run.replicate == 1:
            events += [
                Incident(
                    category="worker_death", run_name=event.record.run.name, episode=3, detail='"-9",\n"kind":"episode"'
                ),
                WorkerStarted(worker="w1", incarnation=1, device="cpu:1", pid=7, uuids=("",), torch_version="2.13"),
            ]
    before = fold(events)
    return [*events, ExperimentContinued(versions={"esper_ab": "2"}, machine={}, code={}),
            PlanExtended(extension=extend(before.plan, before.design, 6, 2))]  # fmt: skip


def _marked(event: AnyEvent) -> AnyEvent:
    """Checkpoints, shared moments, environments that failed, heads and numbers that are not there; by episode."""
    if isinstance(event, MilestoneReleased) and event.milestone == 2:
        return msgspec.structs.replace(event, observations=Moments(count=2, mean=(0.5,), squares=(0.25,)))
    if not isinstance(event, EpisodeRecorded):
        return event
    record = event.record
    change, ppo, envs = record.episode % 4, record.ppo, record.envs
    if change == 1:
        without = envs[0].measures | {"val_loss": None}
        failed = msgspec.structs.replace(envs[0], failed=True, reward_sum=None, steps=3, measures=without)
        envs = (failed, *envs[1:])
    if ppo is not None and change == 2:
        ppo = msgspec.structs.replace(ppo, entropy=None, ratio_max=9.0, heads={"slot": ppo.heads["slot"]})
    if ppo is not None and change == 3:
        late = msgspec.structs.replace(ppo.heads["op"], entropy=None)
        ppo = msgspec.structs.replace(ppo, heads={"late": late, **ppo.heads})
    milestone = record.episode + 1
    return msgspec.structs.replace(
        event, record=msgspec.structs.replace(record, ppo=ppo, envs=envs),
        checkpoint=Checkpoint(milestone=milestone, file=f"checkpoints/{milestone}.pt", sha256="0" * 64, size_bytes=9),
        observations=Moments(count=milestone, mean=(0.1, 1e300), squares=(0.0, 5e-324)),
    )  # fmt: skip


def said_twice() -> list[AnyEvent]:
    """A record that is there again, later, with another number: nobody writes that, and the last word counts."""
    events = one_replicate()
    place, first = next((i, event) for i, event in enumerate(events) if isinstance(event, EpisodeRecorded))
    timing = msgspec.structs.replace(first.record.timing, total_s=77.0)
    again = EpisodeRecorded(record=msgspec.structs.replace(first.record, timing=timing))
    return [*events[: place + 5], again, *events[place + 5 :]]


def ends_in_a_release() -> list[AnyEvent]:
    """Whatever comes after an end means: it goes on."""
    events = one_replicate()
    return [*events, *(event for event in events if isinstance(event, MilestoneReleased))]


@pytest.mark.parametrize("events", [one_replicate, three_groups, failed_run, said_twice, ends_in_a_release])
def test_stretches_give_the_same_history(tmp_path, load_in_stretches, events):
    experiment_dir = write(tmp_path / "run", events())
    simple, fast = load(experiment_dir, NEVER), load_in_stretches(experiment_dir)
    assert (fast.lines, fast.wall_time, fast.torn_bytes) == (simple.lines, simple.wall_time, simple.torn_bytes)
    assert fast.history == simple.history
    for name, run in simple.history.runs.items():
        assert numbers(fast.history.runs[name].columns) == numbers(run.columns)
        assert fast.history.runs[name].curve() == run.curve()


@pytest.mark.parametrize("events", [troubled, failed_run, said_twice])
def test_stretches_give_the_same_report_to_the_byte(tmp_path, events):
    experiment_dir = write(tmp_path / "run", events())
    simple, fast = load(experiment_dir, NEVER).history, load(experiment_dir, 0, 50_000).history
    for name, run in simple.runs.items():
        assert numbers(fast.runs[name].columns) == numbers(run.columns)
        kept = pool.CHECKPOINTS_KEPT
        assert fast.runs[name].checkpoints[-kept:] == run.checkpoints[-kept:]
        assert (fast.runs[name].observations, fast.runs[name].state) == (run.observations, run.state)
        assert fast.runs[name].curve() == run.curve()
    assert (fast.shared, fast.ended, fast.incidents) == (simple.shared, simple.ended, simple.incidents)
    for render in (render_text, render_verdict, render_page):
        assert render(content(fast)) == render(content(simple))


def test_a_torn_tail_is_counted_in_both(tmp_path, load_in_stretches):
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    path.write_bytes(path.read_bytes()[:-700])
    simple, fast = load(experiment_dir, NEVER), load_in_stretches(experiment_dir)
    assert fast.torn_bytes == simple.torn_bytes > 0
    assert fast.history == simple.history


@pytest.mark.parametrize(("what", "by"), [(b'"steps":25', b'"steps":24'), (b'"event":', b'"event" :')])
def test_damage_is_told_as_by_the_reading_line_by_line(tmp_path, load_in_stretches, what, by):
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    data = path.read_bytes()
    at = data.rindex(what, 0, data.rindex(b'"kind":"episode"') + 2_000)
    path.write_bytes(data[:at] + by + data[at + len(what) :])
    with pytest.raises(JournalError) as simple:
        load(experiment_dir, NEVER)
    with pytest.raises(JournalError) as fast:
        load_in_stretches(experiment_dir)
    assert str(fast.value) == str(simple.value)


def test_damage_is_told_although_the_journal_is_torn_after_it(tmp_path, load_in_stretches):
    """A torn tail is no damage, and excuses none before it."""
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    data = path.read_bytes()
    at = data.rindex(b'"kind":"episode"', 0, data.rindex(b'"kind":"episode"'))
    path.write_bytes(data[:at] + b'"kind":"Episode"' + data[at + 16 : -50])
    with pytest.raises(JournalError) as simple:
        load(experiment_dir, NEVER)
    with pytest.raises(JournalError) as fast:
        load_in_stretches(experiment_dir)
    assert str(fast.value) == str(simple.value)
    assert "its CRC does not match its contents" in str(fast.value)


def test_damage_in_the_last_line_is_found(tmp_path, load_in_stretches):
    """No line comes after it that would miss its CRC."""
    experiment_dir = write(tmp_path / "run", ends_in_a_release())
    path = experiment_dir / JOURNAL_NAME
    before, _, after = path.read_bytes().rpartition(b'"replicate":0,"milestone"')
    path.write_bytes(before + b'"replicate":1,"milestone"' + after)
    with pytest.raises(JournalError, match="its CRC does not match"):
        load_in_stretches(experiment_dir)


SCRIPT = """
import sys
from pathlib import Path
from esper_ab.journal.fast import pool
from esper_ab.journal.load import load

print("main module")
by_process, answers = pool._by_process, []
pool._by_process = lambda *asked: answers.append(by_process(*asked)) or answers[-1]
loaded = load(Path(sys.argv[1]), 0, 50_000)
print(loaded.lines, all(found is not None for found in answers), len(answers) > 1)
"""


@pytest.mark.parametrize("how", ["script", "-c", "stdin"])
def test_a_script_without_a_guard_reads_in_processes(tmp_path, monkeypatch, how):
    """Its main module runs once, and modules that lie about in the working directory are not taken for Python's."""
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda _: {0, 1})
    experiment_dir = write(tmp_path / "run", one_replicate())
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    there.mkdir(), elsewhere.mkdir()
    (there / "script.py").write_text(SCRIPT)
    (elsewhere / "pickle.py").write_text("raise SystemExit('not this one')\n")
    words = {"script": [str(there / "script.py")], "-c": ["-P", "-c", SCRIPT], "stdin": ["-P", "-"]}[how]
    done = subprocess.run(
        [sys.executable, *words, str(experiment_dir)],
        input=SCRIPT,
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["main module", f"{load(experiment_dir, NEVER).lines} True True"]
    assert done.stderr == ""


@pytest.mark.parametrize("python", ["/bin/false", "/bin/echo", "/nowhere/python", ""])
def test_without_processes_it_is_read_all_the_same(tmp_path, monkeypatch, python):
    experiment_dir = write(tmp_path / "run", one_replicate())
    simple = load(experiment_dir, NEVER)
    monkeypatch.setattr(sys, "executable", python)
    assert load(experiment_dir, 0, 20_000).history == simple.history


def test_a_reader_that_dies_before_it_has_told_all_is_done_without(tmp_path, monkeypatch):
    experiment_dir = write(tmp_path / "run", three_groups())
    simple = load(experiment_dir, NEVER)
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda _: {0, 1})
    loads, answers = pickle.loads, []

    def cut_short(told: bytes) -> object:
        answers.append(told)
        return loads(told[: len(told) // (2 if len(answers) == 3 else 1)])

    monkeypatch.setattr(pool.pickle, "loads", cut_short)
    assert load(experiment_dir, 0, 100_000).history == simple.history
    assert len(answers) > 4


def test_a_stretch_for_each_process(tmp_path, monkeypatch):
    experiment_dir = write(tmp_path / "run", one_replicate())
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(pool, "_LEAST_BYTES", 1_000)
    asked = []
    monkeypatch.setattr(pool, "_by_process", lambda *told: asked.append(told))
    assert load(experiment_dir, 0).history == load(experiment_dir, NEVER).history
    assert len(asked) == 3


def test_measures_other_than_the_plan_declares_are_refused(tmp_path, load_in_stretches):
    events = one_replicate()
    place = max(n for n, event in enumerate(events) if isinstance(event, EpisodeRecorded))
    record = events[place].record
    other = tuple(msgspec.structs.replace(env, measures={"speed": 1.0}) for env in record.envs)
    events[place] = EpisodeRecorded(record=msgspec.structs.replace(record, envs=other))
    with pytest.raises(JournalError, match="has other measures than its plan"):
        load_in_stretches(write(tmp_path / "run", events))


def test_a_line_that_is_gone_is_noticed(tmp_path, load_in_stretches):
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10] + lines[11:]))
    with pytest.raises(JournalError, match="line 11"):
        load_in_stretches(experiment_dir)


def test_the_newest_checkpoints_and_moments_of_a_stretch_are_kept(tmp_path):
    experiment_dir = write(tmp_path / "run", troubled())
    path, whole = experiment_dir / JOURNAL_NAME, load(experiment_dir, NEVER).history
    ((start, end),) = pool.stretches(path, 0, 1 << 30)
    stretch = pool.read_stretch(str(path), start, end, whole.design.measures.names)
    assert (stretch.lines, stretch.doubtful, stretch.torn_bytes) == (load(experiment_dir, NEVER).lines, False, 0)
    for name, part in stretch.runs.items():
        assert len(part.checkpoints) == pool.CHECKPOINTS_KEPT
        assert part.checkpoints == whole.runs[name].checkpoints[-pool.CHECKPOINTS_KEPT :]
        assert part.observations == whole.runs[name].observations
        assert part.observations is not None
    assert {*stretch.runs} == {name for name, run in whole.runs.items() if run.checkpoints}


def test_what_stretches_say_of_a_troubled_experiment_is_what_its_lines_say(tmp_path, load_in_stretches):
    experiment_dir = write(tmp_path / "run", troubled())
    simple, fast = load(experiment_dir, NEVER).history, load_in_stretches(experiment_dir).history
    for name, run in simple.runs.items():
        read = fast.runs[name]
        assert numbers(read.columns) == numbers(run.columns)
        assert read.checkpoints[-pool.CHECKPOINTS_KEPT :] == run.checkpoints[-pool.CHECKPOINTS_KEPT :]
        assert (read.observations, read.released, read.state) == (run.observations, run.released, run.state)
    assert (fast.shared, fast.incidents, fast.present) == (simple.shared, simple.incidents, simple.present)


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 60), st.integers(0, 80), st.booleans())
def test_stretches_end_where_lines_end_and_are_the_file(tmp_path_factory, lengths, chunk_bytes, skipped, is_torn):
    data = b"".join(b"x" * length + b"\n" for length in lengths) + b"torn" * is_torn
    starts = [0, *(at + 1 for at, byte in enumerate(data) if byte == ord("\n"))]
    start = max(at for at in starts if at <= skipped)
    path = tmp_path_factory.mktemp("stretches") / JOURNAL_NAME
    path.write_bytes(data)
    found = pool.stretches(path, start, chunk_bytes)
    assert b"".join(data[begin:end] for begin, end in found) == data[start:]
    assert [begin for begin, _ in found] == [start, *(end for _, end in found)][: len(found)]
    for begin, end in found:
        assert end in starts or end == len(data)
        assert end - begin >= min(chunk_bytes, len(data) - begin)
        assert not any(begin + chunk_bytes < at < end for at in starts), "no later than the first line end after it"


@pytest.mark.parametrize("cores", [1, 2, 8, 9])
def test_no_more_processes_than_cores_and_than_stretches_fit(tmp_path, monkeypatch, cores):
    experiment_dir = write(tmp_path / "run", one_replicate())
    monkeypatch.setattr(pool, "usable_cores", lambda: cores)
    monkeypatch.setattr(pool, "_LEAST_BYTES", 1)
    asked, simple = [], load(experiment_dir, NEVER)
    monkeypatch.setattr(pool, "_by_process", lambda *told: asked.append(told))
    assert load(experiment_dir, 0).history == simple.history
    assert len(asked) <= min(cores, 8)
    assert (len(asked) > cores // 2) == (cores > 1)
