"""What the next incarnation of a lane's worker takes over from the one before."""

from __future__ import annotations

from support import fake_plans

from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control.rules.worker_state import Workers

SPEC = fake_plans.plan().blocks[0].runs[0]
LANE = Lane(name="cpu:0", devices=("cpu:0",), uuids=("",))


def order(incarnation):
    return WorkerOrder(
        endpoint="", worker="w00", incarnation=incarnation, lane=LANE, arithmetic=Arithmetic(), experiment_dir="",
        log_file="",
    )  # fmt: skip


def test_a_start_counts_as_a_restart_if_any_earlier_start_on_its_lane_was_tried():
    workers = Workers()
    starts = [(0, False), (0, True), (1, False), (1, True), (2, False)]
    again = [workers.ordered(order(number), tried=tried).again for number, tried in starts]
    assert again == [False, False, True, True, True]


def test_the_next_incarnation_takes_over_the_run_and_nothing_else_counts():
    workers = Workers()
    before = workers.ordered(order(0), tried=True)
    before.run, before.fault, before.greeted = SPEC, "died", True
    after = workers.ordered(order(1), tried=True)
    assert (after.run, after.fault, after.greeted) == (SPEC, "", False)
    assert workers.of(before.identity) is None
    assert workers.of(after.identity) is workers.on_lane("cpu:0") is after
