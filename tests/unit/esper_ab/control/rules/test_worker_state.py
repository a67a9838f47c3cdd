"""What the next incarnation of a lane's worker takes over from the one before."""

from support.plans import fake_plans
from support.plans.worker_orders import order

from esper_ab.contracts.messages import Failed
from esper_ab.control.rules.worker_state import Fault, Workers

SPEC = fake_plans.plan().blocks[0].runs[0]


def test_a_start_counts_as_a_restart_if_any_earlier_start_on_its_lane_was_tried():
    workers = Workers()
    starts = [(0, False), (0, True), (1, False), (1, True), (2, False)]
    again = [workers.ordered(order(incarnation=number), tried=tried).again for number, tried in starts]
    assert again == [False, False, True, True, True]


def test_the_next_incarnation_takes_over_the_run_and_nothing_else_counts():
    workers = Workers()
    before = workers.ordered(order(incarnation=0), tried=True)
    before.run = SPEC
    before.fault = Fault(text="died")
    before.greeted = True
    after = workers.ordered(order(), tried=True)
    assert (after.run, after.fault, after.greeted) == (SPEC, None, False)
    assert workers.of(before.identity) is None
    assert workers.of(after.identity) is workers.on_lane("cpu:0") is after


def test_what_a_worker_reported_stays_known_when_its_later_messages_make_no_sense():
    worker = Workers().ordered(order(), tried=True)
    worker.failed(Failed(summary="no GPU", traceback="at line 1", again=False, stops=True))
    worker.reject("keeps sending invalid messages")
    assert worker.fault == Fault(
        text="keeps sending invalid messages", traceback="at line 1", retryable=False, stops_experiment=True
    )
