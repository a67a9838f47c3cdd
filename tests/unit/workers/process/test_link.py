"""A worker ends when it loses its connection or is replaced; its loop reports steps at intervals."""

import queue
import time

import pytest
import zmq
from support.plans import fake_plans
from support.workers.hostile_peers import admitted, curve

from esper_ab.contracts.messages import Cancel, Ready, Release
from esper_ab.control.hub import Hub, Received
from workers.process.link import Link, LinkWatch
from workers.process.loop import _BETWEEN_REPORTS_S, _Cancelled, _progress

PATIENCE_S = 30.0


@pytest.fixture
def dealer():
    with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
        peer.setsockopt(zmq.LINGER, 0)
        peer.setsockopt(zmq.IDENTITY, b"w00/1")
        yield peer


@pytest.fixture
def ended():
    return queue.Queue()


@pytest.fixture
def hub(dealer):
    """One that lets the dealer in."""
    new_hub = Hub("tcp")
    keys = admitted(new_hub, "w00/1")
    curve(dealer, keys.server_public.encode(), (keys.public.encode(), keys.secret.encode()))
    return new_hub


def test_a_worker_without_a_coordinator_ends_after_a_time_limit(dealer, ended):
    watch = LinkWatch(dealer, 0.1, 2.0, ended.put)
    dealer.connect("tcp://127.0.0.1:9")
    assert ended.get(timeout=PATIENCE_S) == "no connection to the coordinator for 0 s"
    watch.close()


def test_a_worker_ends_when_its_connection_is_lost(dealer, ended, hub):
    watch = LinkWatch(dealer, 0.5, 2.0, ended.put)
    dealer.connect(hub.endpoint)
    dealer.send(b"\xc1")
    assert len(list(hub.poll(PATIENCE_S))) == 1, "it is connected"
    with pytest.raises(queue.Empty):
        ended.get(timeout=2.0)
    hub.close()
    assert "no connection" in ended.get(timeout=PATIENCE_S)
    watch.close()


def test_a_replaced_worker_ends_immediately(dealer, ended, hub):
    """As a node that could not be reached, and can be again."""
    hub.admit("w00/2")
    watch = LinkWatch(dealer, 3600, 2.0, ended.put)
    dealer.connect(hub.endpoint)
    assert ended.get(timeout=PATIENCE_S) == "the coordinator has another worker in its place"
    watch.close()
    hub.close()


def test_the_release_of_another_run_acknowledges_nothing() -> None:
    hub = Hub()
    spec = fake_plans.plan().blocks[0].runs[0]
    hub.admit("w00/1")
    link = Link(hub.endpoint, "w00/1")
    link.run = spec.ref
    try:
        link.send(Ready(run=spec.ref, warm_up_s=0.0, milestone=0, damaged=()))
        assert any(hub.poll(PATIENCE_S)), "it is connected"
        own_release = Release(run_name=spec.ref.name, milestone=0)
        for release in (Release(run_name="another/7", milestone=0), own_release):
            hub.send("w00/1", release)
        assert link.receive(PATIENCE_S) == own_release
    finally:
        link.close(is_finished=False)
        hub.close()


def test_progress_of_fast_steps_is_reported_at_intervals() -> None:
    hub = Hub()
    spec = fake_plans.plan().blocks[0].runs[0]
    hub.admit("w00/1")
    link = Link(hub.endpoint, "w00/1")
    link.run = spec.ref
    steps_heard = list[int]()
    steps = 0
    begin_s = time.monotonic()
    try:
        report_step = _progress(link, spec, 1, "train")
        while len(steps_heard) < 5 and time.monotonic() - begin_s < PATIENCE_S:
            steps += 1
            report_step(steps)
            steps_heard += [report.message.step for report in hub.poll(0) if isinstance(report, Received)]
        assert len(steps_heard) == 5
        assert sorted(set(steps_heard)) == steps_heard
        assert time.monotonic() - begin_s >= 4 * _BETWEEN_REPORTS_S
        hub.send("w00/1", Cancel(run_name=spec.ref.name, reason="enough"))
        with pytest.raises(_Cancelled, match="enough"):
            any(report_step(steps) for _ in iter(lambda: time.monotonic() - begin_s < PATIENCE_S, False))
    finally:
        link.close(is_finished=False)
        hub.close()
