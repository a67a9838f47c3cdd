"""A worker whose connection is gone ends; one whose coordinator only stands still for a while does not."""

from __future__ import annotations

import queue

import pytest
import zmq
from support.hostile import admitted

from esper_ab.control.hub import Hub
from workers.process.link import LinkWatch

PATIENCE_S = 30.0


@pytest.fixture
def dealer():
    with zmq.Context() as context, context.socket(zmq.DEALER) as made:
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.IDENTITY, b"w00/1")
        yield made


def show(dealer, keys):
    dealer.setsockopt(zmq.CURVE_SERVERKEY, keys.server_public.encode())
    dealer.setsockopt(zmq.CURVE_PUBLICKEY, keys.public.encode())
    dealer.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())


def test_without_a_coordinator_it_ends_after_the_limit(dealer):
    ended: queue.Queue[str] = queue.Queue()
    watch = LinkWatch(dealer, 0.1, 2.0, ended.put)
    dealer.connect("tcp://127.0.0.1:9")
    assert ended.get(timeout=PATIENCE_S) == "no connection to the coordinator for 0 s"
    watch.close()


def test_a_connection_that_stands_is_no_reason_and_its_loss_is_one(dealer):
    ended: queue.Queue[str] = queue.Queue()
    hub = Hub("tcp")
    show(dealer, admitted(hub, "w00/1"))
    watch = LinkWatch(dealer, 0.5, 2.0, ended.put)
    dealer.connect(hub.endpoint)
    dealer.send(b"\xc1")
    assert len(list(hub.poll(PATIENCE_S))) == 1, "it is connected"
    with pytest.raises(queue.Empty):
        ended.get(timeout=2.0)
    hub.close()
    assert "no connection" in ended.get(timeout=PATIENCE_S)
    watch.close()


def test_one_that_was_replaced_ends_at_once(dealer):
    """As a node that could not be reached, and can be again."""
    ended: queue.Queue[str] = queue.Queue()
    hub = Hub("tcp")
    show(dealer, admitted(hub, "w00/1"))
    hub.admit("w00/2")
    watch = LinkWatch(dealer, 3600, 2.0, ended.put)
    dealer.connect(hub.endpoint)
    assert ended.get(timeout=PATIENCE_S) == "the coordinator has another worker in its place"
    watch.close()
    hub.close()
