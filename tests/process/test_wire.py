"""Hub and link without a coordinator: delivery, retries of reports, and refusals."""

import socket
import stat
import time
from pathlib import Path

import pytest
import zmq
from support.plans import fake_plans
from support.workers.fake_worker import report_of
from support.workers.hostile_peers import dealer

from esper_ab.contracts.codec import encode
from esper_ab.contracts.messages import Assign, Hello, Progress, Release, Stop
from esper_ab.contracts.wire_limits import LARGEST_BYTES
from esper_ab.control.hub import BAD_MESSAGES_TOLERATED, BadMessage, Hub, Readable, Received
from workers.process.link import Link

SPEC = fake_plans.plan().blocks[0].runs[0]
HELLO = Hello(worker="w00", incarnation=1, protocol=1, pid=1, uuids=("",), torch_version="none", sources="")
PATIENCE_S = 10.0


@pytest.fixture
def hub():
    hub = Hub()
    hub.admit("w00/1")
    yield hub
    hub.close()


@pytest.fixture
def link(hub):
    link = Link(hub.endpoint, "w00/1", resend_after_s=0.05)
    yield link
    link.close(is_finished=False)


@pytest.fixture
def raw(hub):
    """Open a bare DEALER socket with the worker's identity."""
    with zmq.Context() as context, dealer(context, hub.endpoint, b"w00/1") as peer:
        peer.setsockopt(zmq.LINGER, 0)
        yield peer


def next_message(hub):
    (message,) = hub.poll(PATIENCE_S)
    return message


def receive_messages(hub, count):
    messages = []
    while len(messages) < count:
        messages += hub.poll(PATIENCE_S)
    return messages


def test_hub_and_link_exchange_messages(hub, link):
    link.send(HELLO)
    assert next_message(hub) == Received("w00/1", HELLO)
    assert hub.send("w00/1", Assign(spec=SPEC))
    assert link.receive(PATIENCE_S) == Assign(spec=SPEC)
    assert link.run == SPEC.ref


def test_an_idle_worker_sleeps(link, monkeypatch):
    """Without a report to resend, the resend interval does not wake it."""
    polls = []
    poll = zmq.Socket.poll
    monkeypatch.setattr(zmq.Socket, "poll", lambda *args: polls.append(args) or poll(*args))
    assert link.receive(0.5) is None
    assert 0 < len(polls) <= 0.5 / 0.05 + 2


def test_a_report_is_resent_until_it_is_released(hub, link):
    link.run = SPEC.ref
    report = report_of(SPEC, 1)
    link.send(report)
    assert next_message(hub).message == report
    assert link.receive(0.1) is None
    assert next_message(hub).message == report
    hub.send("w00/1", Release(run_name=SPEC.ref.name, milestone=1))
    assert link.receive(PATIENCE_S) == Release(run_name=SPEC.ref.name, milestone=1)
    list(hub.poll(0))
    assert link.receive(0.1) is None
    assert not list(hub.poll(0.1))


def test_a_repeated_release_is_dropped(hub, link):
    link.run = SPEC.ref
    link.send(report_of(SPEC, 1))
    next_message(hub)
    for milestone in (0, 1, 1):
        hub.send("w00/1", Release(run_name=SPEC.ref.name, milestone=milestone))
    hub.send("w00/1", Stop(reason="enough"))
    assert link.receive(PATIENCE_S) == Release(run_name=SPEC.ref.name, milestone=1)
    assert link.receive(PATIENCE_S) == Stop(reason="enough")


def test_progress_without_a_receiver_is_dropped_immediately():
    link = Link("ipc:///nowhere/at/all", "w00/1")
    begin_s = time.monotonic()
    link.send(Progress(run=SPEC.ref, milestone=1, step=1, phase="train"))
    link.close(is_finished=False)
    assert time.monotonic() - begin_s < PATIENCE_S


def test_the_last_messages_of_a_finished_worker_arrive(hub):
    link = Link(hub.endpoint, "w00/1")
    for _ in range(50):
        link.send(HELLO)
    link.close(is_finished=True)
    assert len(receive_messages(hub, 50)) == 50


def test_send_returns_false_for_an_absent_worker(hub):
    assert hub.send("w00/1", Stop(reason="")) is False


def test_a_peer_is_cut_off_after_a_few_bad_messages(hub, raw):
    for _ in range(BAD_MESSAGES_TOLERATED + 3):
        raw.send(b"\xc1")
    messages = receive_messages(hub, BAD_MESSAGES_TOLERATED + 1)
    assert all(isinstance(bad_message, BadMessage) and bad_message.known for bad_message in messages)
    assert [bad_message.cut_off for bad_message in messages] == [False] * BAD_MESSAGES_TOLERATED + [True]
    raw.send_multipart([b"more", b"of it"])
    assert not list(hub.poll(0.1))


def test_a_multipart_message_is_refused(hub, raw):
    raw.send_multipart([b"a", b"b"])
    assert next_message(hub).reason == "2 parts instead of one"


def test_a_frame_above_the_size_limit_does_not_disconnect_its_peer(hub, raw):
    raw.send(b"x" * (LARGEST_BYTES + 1))
    assert not list(hub.poll(0.2))
    raw.send(encode(HELLO))
    assert next_message(hub).message == HELLO


def test_a_peer_without_a_handshake_is_ignored(hub):
    """ZMTP 1.0 has no authentication: a raw identity and message would otherwise be accepted."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(hub.endpoint.removeprefix("ipc://"))
        connection.sendall(b"\x01\x00" + b"\x06\x00hello")
        assert not list(hub.poll(0.3))


def test_closing_the_hub_removes_the_private_directory_of_its_socket():
    hub = Hub()
    folder = Path(hub.endpoint.removeprefix("ipc://")).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    hub.close()
    assert not folder.exists()


def test_a_closed_descriptor_is_reported(hub):
    our_socket, their_socket = socket.socketpair()
    hub.watch(our_socket.fileno())
    their_socket.close()
    assert next_message(hub) == Readable(our_socket.fileno())
    hub.unwatch(our_socket.fileno())
    our_socket.close()
