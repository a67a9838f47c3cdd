"""A coordinator under attack: foreign connections reach nothing, and the result is the same.

A peer that sends invalid messages is cut off (test_wire.py) and replaced (test_restart.py).
"""

import functools
import random
import time
import tracemalloc

import pytest
import zmq
from support.commands.progress_lines import without_progress
from support.coordinators import disturbed
from support.plans import fake_plans
from support.processes.children import python
from support.workers import hostile_peers

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts import link_keys
from esper_ab.contracts.codec import ProtocolError, decode_from_worker
from esper_ab.control.hub import BAD_MESSAGES_REPORTED, BadMessage, Hub
from esper_ab.journal.fold import fold

PLAN = fake_plans.plan()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return result_hash(fold(disturbed.run(tmp_path_factory.mktemp("run") / "calm", PLAN)))


def plain(peer):
    peer.setsockopt(zmq.PLAIN_USERNAME, b"w00/1")
    peer.setsockopt(zmq.PLAIN_PASSWORD, b"secret")


def foreign_key(order, peer):
    """Use the right server key with a foreign client key pair."""
    hostile_peers.curve(peer, order.server_key.encode(), zmq.curve_keypair())


def foreign_server(peer):
    hostile_peers.curve(peer, zmq.curve_keypair()[0], zmq.curve_keypair())


def connect_strangers(order, answer_flags):
    rng = random.Random(5)
    for setup in (lambda peer: None, plain, functools.partial(foreign_key, order), foreign_server):
        answer_flags.append(hostile_peers.stranger(order.endpoint, setup))
    hello = hostile_peers.MESSAGES[0]
    for data in (
        hostile_peers.zmtp1(b"w00/1", hello),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"",
        b"\xff" * 64,
        *map(rng.randbytes, (10, 500, 9000)),
    ):
        reply = hostile_peers.raw(order.endpoint, data)
        answer_flags.append(len(reply) > 64 or b"esper" in reply)  # anything but libzmq's greeting


def test_foreign_connections_to_the_port_are_refused(tmp_path, undisturbed):
    answer_flags = []
    launcher = hostile_peers.HostileFirst(lambda order: connect_strangers(order, answer_flags), "tcp")
    events = disturbed.run(tmp_path, PLAN, launcher=launcher)
    assert launcher.orders[0].endpoint.startswith("tcp://127.0.0.1:")
    assert answer_flags == [False] * 11
    assert disturbed.incidents(events) == []
    assert result_hash(fold(events)) == undisturbed


def test_foreign_messages_of_the_same_user_are_refused(tmp_path, undisturbed):
    """Over ipc the user's other processes can connect, but none of their messages counts as a worker's."""
    frames = list(hostile_peers.frames(random.Random(1), 3000))
    launcher = hostile_peers.HostileFirst(lambda order: hostile_peers.send_all(order.endpoint, b"nobody", frames[:900]))
    events = disturbed.run(tmp_path, PLAN, launcher=launcher)
    incidents = disturbed.incidents(events, "bad_message")
    assert [entry.detail for entry in incidents] == [
        "'nobody': not a worker of this experiment",
        "899 more messages were refused; only the first of each kind are listed",
    ]
    assert result_hash(fold(events)) == undisturbed


def is_decoded(frame):
    try:
        decode_from_worker(frame)
    except ProtocolError:
        return False
    return True


SECRETS = """
import sys
from pathlib import Path
from support.plans import fake_plans
from esper_ab.control import experiment_run
from esper_ab.launchers.local import LocalLauncher

if __name__ == "__main__":
    launcher = LocalLauncher("support.workers.hostile_peers:confess", "tcp")
    experiment_run.run(fake_plans.plan(), Path(sys.argv[1]), launcher, ())
"""


def test_a_secret_key_never_leaves_the_memory_of_its_process(tmp_path):
    """It is not in the worker's order, the journal, the logs or the output of ps."""
    script = tmp_path / "watching.py"
    script.write_text(SECRETS)
    run = tmp_path / "run"
    confessions = tmp_path / "told"
    run.mkdir()
    confessions.mkdir()
    result = python(script, run, CONFESS_TO=str(confessions))
    assert without_progress(result.stderr) == []
    confessions_read = [file.read_text().split() for file in confessions.iterdir()]
    assert len({secret for secret, _ in confessions_read}) == 2
    assert [is_in_process_list for _, is_in_process_list in confessions_read] == ["False", "False"]
    written_bytes = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert not any(secret.encode() in written_bytes for secret, _ in confessions_read)


def test_every_frame_is_decoded_or_refused_quickly():
    """A short, seeded version of scripts/fuzz, with bombs of a megabyte."""
    begin_s = time.process_time()
    accepted_frames = sum(map(is_decoded, hostile_peers.frames(random.Random(3), 5_000)))
    accepted_bombs = [len(bomb) for bomb in hostile_peers.BOMBS if is_decoded(bomb)]
    assert 0 < accepted_frames < 250
    assert accepted_bombs == []
    assert time.process_time() - begin_s < 30


@pytest.mark.parametrize("bomb", range(2))
def test_a_megabyte_of_empty_containers_is_refused_before_it_is_allocated(bomb):
    data = hostile_peers.BOMBS[bomb]
    tracemalloc.start()
    try:
        assert not is_decoded(data)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(data)  # all of it would be eighty times as much
    finally:
        tracemalloc.stop()


@pytest.fixture
def hub():
    hub = Hub("tcp")
    yield hub
    hub.close()


def receive(hub, wait_s=10.0):
    return list(hub.poll(wait_s))


def test_a_key_admits_only_its_own_worker(hub):
    """A worker with another's identity is recognised by its key, and its message is refused."""
    hub.admit("w00/1")
    hostile_peers.send_all(hub.endpoint, b"w00/1", [hostile_peers.MESSAGES[0]], hostile_peers.admitted(hub, "w01/1"))
    assert receive(hub) == [BadMessage("w01/1", "calls itself 'w00/1'", known=True, cut_off=False)]


def accepts(hub, keys):
    """True if the hub accepts a connection with these keys."""
    pair = keys.public.encode(), keys.secret.encode()
    return hostile_peers.stranger(
        hub.endpoint, lambda peer: hostile_peers.curve(peer, keys.server_public.encode(), pair)
    )


def test_a_key_is_valid_from_registration_until_the_next_incarnation(hub):
    keys = link_keys.make("w00/1", hub.admit("w00/1"))
    hub.register("w01/1", keys.public)  # never admitted
    assert not accepts(hub, keys)
    hub.register("w00/1", keys.public)
    hub.admit("w00/2")
    hub.register("w00/1", keys.public)  # by an incarnation that has been replaced
    assert not accepts(hub, keys)
    assert receive(hub, 0) == []


def test_only_the_first_bad_messages_are_reported_individually(hub):
    """Only distinct messages are named; a message that is repeated is counted."""
    reported_count = 0
    for worker in range(BAD_MESSAGES_REPORTED):
        identity = f"w{worker:02d}/1"
        hostile_peers.send_all(
            hub.endpoint, identity.encode(), [b"\xc1", b"\xc1", b""], hostile_peers.admitted(hub, identity)
        )
        messages = []
        while len(messages) < 3:
            messages += receive(hub)
        reported_count += sum(bad_message.new for bad_message in messages)
    assert reported_count == BAD_MESSAGES_REPORTED
    assert hub.unreported == 3 * BAD_MESSAGES_REPORTED - reported_count
