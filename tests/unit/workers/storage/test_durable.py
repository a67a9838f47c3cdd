"""A resumed run equals an undisturbed one; damaged checkpoints are never loaded."""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.plans.worker_orders import order
from support.workers.fake_worker import TIMING
from support.worlds.tensor_world import make_session, quiet

from esper_ab.contracts.message import Message
from esper_ab.contracts.messages import Assign, Cancel, EpisodeFinished, Evaluated, Progress, Ready, Release, Stop
from esper_ab.contracts.records import Checkpoint, EpisodeRecord, EvaluationRecord
from esper_ab.control.hub import Hub, Received
from workers.process import loop
from workers.process.link import Link
from workers.run.session import Session
from workers.storage import durable, state_bytes

EPISODES = 4
PATIENCE_S = 60.0


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
    records = []
    states = []
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
def test_a_run_resumed_at_any_point_equals_an_undisturbed_run(milestone: int, whole: Whole, tmp_path: Path) -> None:
    """Records, states byte by byte, evaluation, and with it the sha256 of the policy's file."""
    session = make_session(episodes=EPISODES)
    session.resume(state_bytes.from_bytes(whole.states[milestone - 1]))
    session.warm_up(quiet)
    resumed_run = rest_of(session, milestone, tmp_path)
    assert resumed_run.records == whole.records[milestone:]
    assert resumed_run.states == whole.states[milestone:]
    assert resumed_run.evaluation == whole.evaluation


@pytest.mark.parametrize("item", ["policy", "optimiser", "observations", "returns"])
def test_every_item_of_a_checkpoint_affects_the_resumed_run(item: str, whole: Whole) -> None:
    """Each is put back to where a fresh run has it: the next two episodes must differ."""
    milestone = 2
    state = state_bytes.from_bytes(whole.states[milestone - 1])
    fresh_state = make_session(episodes=EPISODES).state()
    assert fresh_state is not None
    assert (
        set(state["agent"]) == set(fresh_state["agent"]) == {"spec", "policy", "optimiser", "observations", "returns"}
    )
    state["agent"][item] = fresh_state["agent"][item]
    session = make_session(episodes=EPISODES)
    session.resume(state)
    digests = [timeless(session.train(episode, quiet, quiet)).digest for episode in range(milestone, EPISODES)]
    assert digests[-1] != whole.records[-1].digest


@pytest.mark.parametrize("controller", ["random", "heuristic", "schedule", "wait"])
def test_a_run_of_a_stateless_controller_can_start_at_any_point(controller: str, tmp_path: Path) -> None:
    undisturbed = rest_of(make_session(controller=controller), 0, tmp_path)
    session = make_session(controller=controller)
    assert session.state() is None
    assert rest_of(session, 1, tmp_path).records == undisturbed.records[1:]


def test_equal_checkpoint_states_have_equal_bytes(whole: Whole) -> None:
    """However they came about: shared strings and lists of a state leave no trace."""
    for data in whole.states:
        assert state_bytes.to_bytes(state_bytes.from_bytes(data)) == data
    shared_list = ["x" * 3]
    unshared_state = {"a": list(shared_list), "b": ["".join(["x"] * 3)], "".join(["a", "b"]): 1}
    assert state_bytes.to_bytes({"a": shared_list, "b": shared_list, "ab": 1}) == state_bytes.to_bytes(unshared_state)


def test_a_state_of_another_run_is_refused(whole: Whole) -> None:
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
    checkpoints = [durable.store(experiment_dir, REF, milestone, item) for milestone, item in enumerate(data, start=1)]
    return tuple(reversed(checkpoints))


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def take_up(experiment_dir: Path, checkpoints: tuple[Checkpoint, ...]) -> tuple[int, list[bytes], tuple[str, ...]]:
    loaded_states: list[bytes] = []
    milestone, damage_reports = durable.take_up(experiment_dir, REF, checkpoints, loaded_states.append)
    return milestone, loaded_states, damage_reports


def test_two_generations_of_checkpoints_are_kept(tmp_path: Path) -> None:
    checkpoints = generations(tmp_path, *(bytes([milestone]) for milestone in range(1, 13)))
    assert listing(tmp_path) == ["checkpoints/a/0/11.pt", "checkpoints/a/0/12.pt"]
    assert take_up(tmp_path, checkpoints) == (12, [bytes([12])], ())


def test_a_replaced_worker_does_not_overwrite_files_of_its_successor(tmp_path: Path) -> None:
    """One that was taken for lost comes back, and writes and removes what it would have."""
    overwritten_checkpoint = durable.store(tmp_path, REF, 5, b"first")
    successor = [durable.store(tmp_path, REF, milestone, b"again", 2) for milestone in (5, 6)]
    late_checkpoints = [durable.store(tmp_path, REF, milestone, b"a zombie's") for milestone in (5, 6, 7)]
    assert overwritten_checkpoint.file == late_checkpoints[0].file
    assert take_up(tmp_path, tuple(reversed(successor))) == (6, [b"again"], ())
    durable.store(tmp_path, REF, 9, b"later", 3)
    assert [path.name for path in tmp_path.rglob("*.pt")] == ["9.3.pt"]


def test_a_checkpoint_with_a_flipped_bit_or_another_length_is_refused(whole: Whole, tmp_path: Path) -> None:
    """300 bits and 100 lengths: one sentence each, and the generation before instead."""
    old_state, new_state = whole.states[:2]
    checkpoints = generations(tmp_path, old_state, new_state)
    draw = random.Random(4)
    damages = [(new_state + b"x", f"has more than {len(new_state)} bytes; {len(new_state)} were recorded")]
    for bit in draw.sample(range(8 * len(new_state)), 300):
        place, bit_in_byte = divmod(bit, 8)
        damages.append(
            (new_state[:place] + bytes([new_state[place] ^ 1 << bit_in_byte]) + new_state[place + 1 :], "has sha256 ")
        )
    lengths = (0, 1, len(new_state) - 1, *draw.sample(range(len(new_state)), 100))
    damages += [(new_state[:length], f"has {length} bytes; {len(new_state)} were recorded") for length in lengths]
    for data, complaint in damages:
        (tmp_path / checkpoints[0].file).write_bytes(data)
        milestone, loaded_states, (sentence,) = take_up(tmp_path, checkpoints)
        assert (milestone, loaded_states) == (1, [old_state])
        assert sentence.startswith(f"checkpoints/a/0/2.pt {complaint}")


def test_a_run_without_an_intact_checkpoint_starts_from_the_beginning(tmp_path: Path) -> None:
    checkpoints = generations(tmp_path, b"one", b"two")
    (tmp_path / checkpoints[0].file).unlink()
    (tmp_path / checkpoints[1].file).write_bytes(b"0ne")
    milestone, loaded_states, damage_reports = take_up(tmp_path, checkpoints)
    assert (milestone, loaded_states) == (0, [])
    assert damage_reports[0] == "checkpoints/a/0/2.pt cannot be read: No such file or directory"
    assert damage_reports[1].startswith("checkpoints/a/0/1.pt has sha256 ")
    assert take_up(tmp_path, ()) == (0, [], ())


@pytest.mark.parametrize(
    "file",
    [
        "/etc/passwd",
        "../../x.pt",
        "checkpoints/b/0/1.pt",
        "checkpoints/a/0/2.pt",
        "checkpoints/a/0/2.2.pt",
        "checkpoints/a/0/1.x.pt",
        "checkpoints/a/0/../0/1.pt",
    ],
)
def test_a_checkpoint_path_with_another_file_name_is_refused(file: str, tmp_path: Path) -> None:
    (checkpoint,) = generations(tmp_path, b"one")
    milestone, loaded_states, (sentence,) = take_up(tmp_path, (msgspec.structs.replace(checkpoint, file=file),))
    assert (milestone, loaded_states) == (0, [])
    assert sentence == f"checkpoints/a/0/1.pt is the state file of run a/0 after episode 0, not {file!r}"


# --- writing ---


ENOUGH = 1 << 40


class Disk:
    """The room that is left of it for os.write, and how much is written at a time."""

    room = at_a_time = ENOUGH
    _write = staticmethod(os.write)

    def write(self, descriptor: int, data: memoryview) -> int:
        if not self.room:
            no_room_left()
        written_bytes = self._write(descriptor, bytes(data[: min(self.room, self.at_a_time)]))
        self.room -= written_bytes
        return written_bytes


def no_room_left(*_args: object, **_options: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    new_disk = Disk()
    monkeypatch.setattr(os, "write", new_disk.write)
    return new_disk


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_only_the_previous_file(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable.write(tmp_path, "x", b"before")
    with monkeypatch.context() as patched:
        patched.setattr(os, call, no_room_left)
        with pytest.raises(OSError, match="No space left"):
            durable.write(tmp_path, "x", b"after")
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"x": b"before"}


def test_short_writes_are_continued_until_the_end(tmp_path: Path, disk: Disk) -> None:
    disk.at_a_time = 7
    sha256 = durable.write(tmp_path, "x", b"0123456789" * 5)
    assert durable.read(tmp_path / "x", sha256, 50) == b"0123456789" * 5


def test_a_write_removes_files_of_a_killed_writer(tmp_path: Path) -> None:
    for name in (".x.41-41", ".x.41-42"):
        (tmp_path / name).write_bytes(b"ha")
    (tmp_path / ".xy.41-41").write_bytes(b"another's")
    durable.write(tmp_path, "x", b"whole")
    assert {entry.name for entry in tmp_path.iterdir()} == {"x", ".xy.41-41"}


# --- the loop ---


class Conversation:
    """With a real worker loop in a thread; at the end of the context it has left and its sockets are closed."""

    def __init__(self, experiment_dir: Path) -> None:
        self._hub = Hub()
        self._order = order(endpoint=self._hub.endpoint, experiment_dir=str(experiment_dir), log_file="logs/w00.log")
        self._hub.admit(self._order.identity)
        self._unread: list[Message] = []
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        link = Link(self._order.endpoint, self._order.identity)
        try:
            loop.serve(link, self._order, lambda experiment_dir, log_file: None)
        finally:
            link.close(is_finished=True)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_error: object) -> None:
        self.say(Stop(reason="the test is over"))
        self._thread.join(PATIENCE_S)
        self._hub.close()
        assert not self._thread.is_alive()

    def say(self, message: Message) -> None:
        """To the worker, as soon as its socket is there."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._hub.send("w00/1", message) and time.monotonic() < deadline:
            self._hub.poll(0.02)

    def hear(self, kind: type, *, phase: str = "") -> Message:
        """The next message of `kind` (and `phase`); other signs of life are passed over, other reports fail."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._unread += [event.message for event in self._hub.poll(0.1) if isinstance(event, Received)]
            while self._unread:
                message = self._unread.pop(0)
                if isinstance(message, kind) and phase in ("", getattr(message, "phase", "")):
                    return message
                assert isinstance(message, Progress), message
        raise AssertionError(f"no {kind.__name__} {phase}")


def release(milestone: int) -> Release:
    return Release(run_name="a/0", milestone=milestone)


def test_episodes_repeated_after_a_damaged_checkpoint_are_bit_identical(whole: Whole, tmp_path: Path) -> None:
    """The newest is damaged: the one before is taken, and what was lost is written as it was recorded."""
    spec = make_session(episodes=EPISODES).spec
    checkpoints = generations(tmp_path, *whole.states[:2])
    (tmp_path / checkpoints[0].file).write_bytes(b"rot")
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=spec, milestone=2, checkpoints=checkpoints))
        ready_report = worker.hear(Ready)
        assert ready_report.milestone == 1
        assert ready_report.damaged == (f"checkpoints/a/0/2.pt has 3 bytes; {checkpoints[0].size_bytes} were recorded",)
        worker.say(release(1))
        repeated_report = worker.hear(EpisodeFinished)
    assert timeless(repeated_report.record) == whole.records[1]
    assert repeated_report.checkpoint == checkpoints[0]


def test_a_checkpoint_of_another_run_is_not_loaded(whole: Whole, tmp_path: Path) -> None:
    checkpoints = generations(tmp_path, whole.states[0])
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=make_session(episodes=EPISODES, rng_seed=6).spec, milestone=1, checkpoints=checkpoints))
        ready_report = worker.hear(Ready)
    complaint = "checkpoints/a/0/1.pt is no checkpoint of this run: it was written for a different run"
    assert (ready_report.milestone, ready_report.damaged) == (0, (complaint,))


def test_a_fixed_controller_writes_no_checkpoint(tmp_path: Path) -> None:
    spec = make_session(controller="wait", episodes=EPISODES).spec
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=spec, milestone=3))
        assert worker.hear(Ready).milestone == 3
        worker.say(release(3))
        finished = worker.hear(EpisodeFinished)
    assert (finished.record.episode, finished.checkpoint) == (3, None)
    assert not (tmp_path / "checkpoints").exists()


def test_a_cancelled_run_stops_at_the_next_step(tmp_path: Path) -> None:
    """In the middle of an episode that would last for minutes; the next run is none the worse for it."""
    endless_spec = make_session(steps=100_000).spec
    next_spec = make_session(group="b").spec
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=endless_spec))
        worker.hear(Ready)
        worker.say(release(0))
        worker.hear(Progress, phase="train")
        worker.say(Cancel(run_name="b/0", reason="not this one"))
        for _ in range(20):  # more than can have been on their way
            worker.hear(Progress, phase="train")
        worker.say(Cancel(run_name="a/0", reason="its seed cannot be completed"))
        worker.say(Assign(spec=next_spec))
        assert worker.hear(Ready).run.name == "b/0"


def test_a_worker_retries_writes_until_the_disk_has_room(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a checkpoint and of the policy: what was there stays, nothing is left over, the run goes on."""
    monkeypatch.setattr(loop, "_ASK_FOR_ROOM_S", 0.1)
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=make_session().spec))
        worker.hear(Ready)
        worker.say(release(0))
        first_report = worker.hear(EpisodeFinished)
        disk.room = 1000
        worker.say(release(1))
        for _ in range(2):  # it says so, and says so again
            worker.hear(Progress, phase="disk full")
        checkpoint = first_report.checkpoint
        assert listing(tmp_path) == [checkpoint.file] == ["checkpoints/a/0/1.pt"]
        assert durable.read(tmp_path / checkpoint.file, checkpoint.sha256, checkpoint.size_bytes)
        disk.room = ENOUGH
        second_report = worker.hear(EpisodeFinished)
        disk.room = 1000
        worker.say(release(2))
        worker.hear(Progress, phase="disk full")
        disk.room = ENOUGH
        evaluation_report = worker.hear(Evaluated)
        worker.say(release(3))
    assert listing(tmp_path) == ["checkpoints/a/0/1.pt", "checkpoints/a/0/2.pt", "policies/a/0.pt"]
    undisturbed = rest_of(make_session(), 0, tmp_path)
    assert [timeless(report.record) for report in (first_report, second_report)] == undisturbed.records
    assert timeless(evaluation_report.record) == undisturbed.evaluation
