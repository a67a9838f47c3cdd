"""What a worker's loop reports while a run steps."""

from __future__ import annotations

import time

import pytest
from support import fake_plans

from esper_ab.contracts.messages import Cancel
from esper_ab.control.hub import Hub, Received
from workers.process.link import Link
from workers.process.loop import _BETWEEN_REPORTS_S, _Cancelled, _progress

SPEC = fake_plans.plan().blocks[0].runs[0]
PATIENCE_S = 10.0


def test_fast_steps_are_reported_now_and_then_and_a_cancel_is_heard_between_them() -> None:
    hub = Hub()
    hub.admit("w00/1")
    link = Link(hub.endpoint, "w00/1")
    link.run = SPEC.ref
    heard, steps, began = list[int](), 0, time.monotonic()
    try:
        on_step = _progress(link, SPEC, 1, "train")
        while len(heard) < 5 and time.monotonic() - began < PATIENCE_S:
            steps += 1
            on_step(steps)
            heard += [one.message.step for one in hub.poll(0) if isinstance(one, Received)]
        assert len(heard) == 5
        assert sorted(set(heard)) == heard
        assert time.monotonic() - began >= 4 * _BETWEEN_REPORTS_S
        hub.send("w00/1", Cancel(run_name=SPEC.ref.name, reason="enough"))
        with pytest.raises(_Cancelled, match="enough"):
            any(on_step(steps) for _ in iter(lambda: time.monotonic() - began < PATIENCE_S, False))
    finally:
        link.close(finished=False)
        hub.close()
