"""A run that is taken up again goes on as if nothing had happened; what is not intact is never taken up."""

from __future__ import annotations

import errno
import os
import random
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.coordinator_stub import Conversation
from support.fake_worker import TIMING
from support.tensor_world import make_session, quiet

from esper_ab.contracts.messages import Assign, Cancel, EpisodeFinished, Evaluated, Progress, Ready, Release
from esper_ab.contracts.records import Checkpoint, EpisodeRecord, EvaluationRecord
from workers.process import loop
from workers.run.session import Session
from workers.storage import durable, state_bytes

EPISODES = 4


def timeless(record: Any) -> Any:
    return msgspec.structs.replace(record, timing=TIMING)


@dataclass(frozen=True)
class Whole:
    """An undisturbed run: its records without times, its state after every episode."""

    records: list[EpisodeRecord]
    states: list[bytes]
    evaluation: EvaluationRecord


def rest_of(session: Session, start: int, experiment_dir: Path) -> Whole:
    """From milestone `start` to the end."""
    records, states = [], []
    for episode in range(start, session.spec.episodes):
        records.append(timeless(session.train(episode, quiet, quiet)))
        state = session.state()
        states.append(b"" if state is None else state_bytes.to_bytes(state))
    return Whole(records, states, timeless(session.evaluate(experiment_dir, quiet)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    session = make_session(episodes=EPISODES)
    session.warm_up(quiet)
    return rest_of(session, 0, tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("milestone", range(1, EPISODES + 1))
def test_a_run_taken_up_at_any_point_is_the_undisturbed_one(milestone: int, whole: Whole, tmp_path: Path) -> None:
    """Records, states byte by byte, evaluation, and with it the sha256 of the policy's file."""
    session = make_session(episodes=EPISODES)
    session.resume(state_bytes.from_bytes(whole.states[milestone - 1]))
    session.warm_up(quiet)
    taken_up = rest_of(session, milestone, tmp_path)
    assert taken_up.records == whole.records[milestone:]
    assert taken_up.states == whole.states[milestone:]
    assert taken_up.evaluation == whole.evaluation


@pytest.mark.parametrize("item", ["policy", "optimiser", "observations", "returns"])
def test_no_item_of_the_state_can_be_left_out(item: str, whole: Whole) -> None:
    """Each is put back to where a fresh run has it: the next two episodes must differ."""
    milestone = 2
    state = state_bytes.from_bytes(whole.states[milestone - 1])
    fresh = make_session(episodes=EPISODES).state()
    assert fresh is not None
    assert set(state["agent"]) == set(fresh["agent"]) == {"spec", "policy", "optimiser", "observations", "returns"}
    state["agent"][item] = fresh["agent"][item]
    session = make_session(episodes=EPISODES)
    session.resume(state)
    found = [timeless(session.train(episode, quiet, quiet)).digest for episode in range(milestone, EPISODES)]
    assert found[-1] != whole.records[-1].digest


@pytest.mark.parametrize("controller", ["random", "heuristic", "schedule", "wait"])
def test_a_controller_stands_at_any_point_at_once(controller: str, tmp_path: Path) -> None:
    undisturbed = rest_of(make_session(controller=controller), 0, tmp_path)
    session = make_session(controller=controller)
    assert session.state() is None
    assert rest_of(session, 1, tmp_path).records == undisturbed.records[1:]


def test_equal_states_are_equal_bytes(whole: Whole) -> None:
    """However they came about: shared strings and lists of a state leave no trace."""
    for data in whole.states:
        assert state_bytes.to_bytes(state_bytes.from_bytes(data)) == data
    shared = ["x" * 3]
    apart = {"a": list(shared), "b": ["".join(["x"] * 3)], "".join(["a", "b"]): 1}
    assert state_bytes.to_bytes({"a": shared, "b": shared, "ab": 1}) == state_bytes.to_bytes(apart)


def test_bytes_of_another_run_change_nothing(whole: Whole) -> None:
    session = make_session(episodes=EPISODES, replicate=1)
    agent = session.agent
    with pytest.raises(ValueError, match="it was written for a different run"):
        session.resume(state_bytes.from_bytes(whole.states[0]))
    with pytest.raises(ValueError, match="format 0 where 1 is expected"):
        session.resume({"format": 0})
    assert session.agent is agent


# --- generations ---


REF = make_session().spec.ref


def generations(experiment_dir: Path, *data: bytes) -> tuple[Checkpoint, ...]:
    """Milestones 1, 2, … written one after the other; newest first."""
    return tuple(
        durable.store(experiment_dir, REF, milestone, item) for milestone, item in enumerate(data, start=1)
    )[::-1]


def taken(experiment_dir: Path, offered: tuple[Checkpoint, ...]) -> tuple[int, list[bytes], tuple[str, ...]]:
    found: list[bytes] = []
    milestone, damaged = durable.take_up(experiment_dir, REF, offered, found.append)
    return milestone, found, damaged


def test_two_generations_are_kept(tmp_path: Path) -> None:
    written = generations(tmp_path, *(bytes([milestone]) for milestone in range(1, 13)))
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.pt")} == {
        "checkpoints/a/0/11.pt", "checkpoints/a/0/12.pt",
    }
    assert taken(tmp_path, written) == (12, [bytes([12])], ())


def test_a_worker_that_was_replaced_overwrites_nothing_of_its_successors(tmp_path: Path) -> None:
    """One that was taken for lost comes back, and writes and removes what it would have."""
    first = durable.store(tmp_path, REF, 5, b"first")
    successor = [durable.store(tmp_path, REF, milestone, b"again", 2) for milestone in (5, 6)]
    late = [durable.store(tmp_path, REF, milestone, b"a zombie's") for milestone in (5, 6, 7)]
    assert first.file == late[0].file
    assert taken(tmp_path, tuple(reversed(successor))) == (6, [b"again"], ())
    durable.store(tmp_path, REF, 9, b"later", 3)
    assert [path.name for path in tmp_path.rglob("*.pt")] == ["9.3.pt"]


def test_no_flipped_bit_and_no_cut_is_taken_up(whole: Whole, tmp_path: Path) -> None:
    """300 bits and 100 lengths: one sentence each, and the generation before instead."""
    old, new = whole.states[:2]
    offered = generations(tmp_path, old, new)
    path, draw = tmp_path / offered[0].file, random.Random(4)
    for bit in draw.sample(range(8 * len(new)), 300):
        flipped = bytearray(new)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        milestone, found, (sentence,) = taken(tmp_path, offered)
        assert (milestone, found) == (1, [old])
        assert sentence.startswith("checkpoints/a/0/2.pt has sha256 ")
    for length in (0, 1, len(new) - 1, *draw.sample(range(len(new)), 100)):
        path.write_bytes(new[:length])
        milestone, found, (sentence,) = taken(tmp_path, offered)
        assert (milestone, found) == (1, [old])
        assert sentence == f"checkpoints/a/0/2.pt has {length} bytes; {len(new)} were recorded"
    path.write_bytes(new + b"x")
    assert taken(tmp_path, offered)[2] == (
        f"checkpoints/a/0/2.pt has more than {len(new)} bytes; {len(new)} were recorded",
    )


def test_without_an_intact_generation_a_run_begins_anew(tmp_path: Path) -> None:
    offered = generations(tmp_path, b"one", b"two")
    (tmp_path / offered[0].file).unlink()
    (tmp_path / offered[1].file).write_bytes(b"0ne")
    milestone, found, damaged = taken(tmp_path, offered)
    assert (milestone, found) == (0, [])
    assert damaged[0] == "checkpoints/a/0/2.pt cannot be read: No such file or directory"
    assert damaged[1].startswith("checkpoints/a/0/1.pt has sha256 ")
    assert taken(tmp_path, ()) == (0, [], ())


@pytest.mark.parametrize("file", ["/etc/passwd", "../../x.pt", "checkpoints/b/0/1.pt", "checkpoints/a/0/2.pt",
                                  "checkpoints/a/0/2.2.pt", "checkpoints/a/0/1.x.pt", "checkpoints/a/0/../0/1.pt"])
def test_only_the_runs_own_files_are_opened(file: str, tmp_path: Path) -> None:
    (offered,) = generations(tmp_path, b"one")
    milestone, found, (sentence,) = taken(tmp_path, (msgspec.structs.replace(offered, file=file),))
    assert (milestone, found) == (0, [])
    assert sentence == f"checkpoints/a/0/1.pt is the state file of run a/0 after episode 0, not {file!r}"


# --- writing ---


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_the_previous_file_and_nothing_else(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable.write(tmp_path, "x", b"before")

    def full(*_args: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            durable.write(tmp_path, "x", b"after")
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"x": b"before"}


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:7])))
        sha256 = durable.write(tmp_path, "x", b"0123456789" * 5)
    assert durable.read(tmp_path / "x", sha256, 50) == b"0123456789" * 5


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    for name in (".x.41-41", ".x.41-42"):
        (tmp_path / name).write_bytes(b"ha")
    (tmp_path / ".xy.41-41").write_bytes(b"another's")
    durable.write(tmp_path, "x", b"whole")
    assert {entry.name for entry in tmp_path.iterdir()} == {"x", ".xy.41-41"}


# --- the loop ---


def release(milestone: int) -> Release:
    return Release(run_name="a/0", milestone=milestone)


def stored(experiment_dir: Path, whole: Whole, *milestones: int) -> tuple[Checkpoint, ...]:
    return tuple(
        durable.store(experiment_dir, REF, milestone, whole.states[milestone - 1]) for milestone in milestones
    )[::-1]


def test_episodes_done_again_after_damage_are_the_same_to_the_byte(whole: Whole, tmp_path: Path) -> None:
    """The newest is damaged: the one before is taken, and what was lost is written as it was recorded."""
    spec = make_session(episodes=EPISODES).spec
    offered = stored(tmp_path, whole, 1, 2)
    (tmp_path / offered[0].file).write_bytes(b"rot")
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=spec, milestone=2, checkpoints=offered))
        ready = worker.hear(Ready)
        assert ready.milestone == 1
        assert ready.damaged == (f"checkpoints/a/0/2.pt has 3 bytes; {offered[0].size_bytes} were recorded",)
        worker.say(release(1))
        again = worker.hear(EpisodeFinished)
    assert timeless(again.record) == whole.records[1]
    assert again.checkpoint == offered[0]


def test_a_checkpoint_of_other_orders_is_not_taken_up(whole: Whole, tmp_path: Path) -> None:
    offered = stored(tmp_path, whole, 1)
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=make_session(episodes=EPISODES, rng_seed=6).spec, milestone=1, checkpoints=offered))
        ready = worker.hear(Ready)
    assert ready.milestone == 0
    assert ready.damaged == (
        "checkpoints/a/0/1.pt is no checkpoint of this run: it was written for a different run",
    )


def test_a_fixed_controller_writes_nothing_and_stands_where_it_is_told(tmp_path: Path) -> None:
    spec = make_session(controller="wait", episodes=EPISODES).spec
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=spec, milestone=3))
        assert worker.hear(Ready).milestone == 3
        worker.say(release(3))
        finished = worker.hear(EpisodeFinished)
    assert (finished.record.episode, finished.checkpoint) == (3, None)
    assert not (tmp_path / "checkpoints").exists()


def test_a_cancelled_run_is_given_up_at_the_next_step(tmp_path: Path) -> None:
    """In the middle of an episode that would last for minutes; the next run is none the worse for it."""
    endless, after = make_session(steps=100_000).spec, make_session(group="b").spec
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=endless))
        worker.hear(Ready)
        worker.say(release(0))
        worker.hear(Progress, phase="train")
        worker.say(Cancel(run_name="b/0", reason="not this one"))
        for _ in range(20):  # more than can have been on their way
            worker.hear(Progress, phase="train")
        worker.say(Cancel(run_name="a/0", reason="its seed cannot be completed"))
        worker.say(Assign(spec=after))
        assert worker.hear(Ready).run.name == "b/0"


def test_a_full_disk_is_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a checkpoint and of the policy: what was there stays, nothing is left over, the run goes on."""
    full, write = threading.Event(), os.write

    def written(descriptor: int, data: bytes) -> int:
        """A full disk takes less and less, and in the end nothing."""
        if full.is_set() and len(data) < 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, bytes(data)[: len(data) // 2] if full.is_set() else data)

    def files() -> list[str]:
        return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())

    monkeypatch.setattr(os, "write", written)
    monkeypatch.setattr(loop, "_ASK_FOR_ROOM_S", 0.1)
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=make_session().spec))
        worker.hear(Ready)
        worker.say(release(0))
        first = worker.hear(EpisodeFinished)
        full.set()
        worker.say(release(1))
        for _ in range(2):  # it says so, and says so again
            worker.hear(Progress, phase="disk full")
        assert files() == ["checkpoints/a/0/1.pt"]
        kept = first.checkpoint
        assert durable.read(tmp_path / kept.file, kept.sha256, kept.size_bytes)
        full.clear()
        second = worker.hear(EpisodeFinished)
        full.set()
        worker.say(release(2))
        worker.hear(Progress, phase="disk full")
        full.clear()
        evaluated = worker.hear(Evaluated)
        worker.say(release(3))
    assert files() == ["checkpoints/a/0/1.pt", "checkpoints/a/0/2.pt", "policies/a/0.pt"]
    undisturbed = rest_of(make_session(), 0, tmp_path)
    assert [one.record.digest for one in (first, second)] == [record.digest for record in undisturbed.records]
    assert evaluated.record.digest == undisturbed.evaluation.digest
