"""State that the next incarnation of a lane's worker inherits."""

from support.plans import fake_plans
from support.plans.worker_orders import order

from esper_ab.contracts.messages import Failed
from esper_ab.control.rules.worker_state import Fault, Workers

SPEC = fake_plans.plan().blocks[0].runs[0]


def test_a_second_start_on_a_lane_counts_as_a_restart():
    workers = Workers()
    starts = [(0, False), (0, True), (1, False), (1, True), (2, False)]
    restarts = [workers.ordered(order(incarnation=number), tried=was_tried).again for number, was_tried in starts]
    assert restarts == [False, False, True, True, True]


def test_a_restarted_worker_inherits_only_the_run_of_its_predecessor():
    workers = Workers()
    previous_state = workers.ordered(order(incarnation=0), tried=True)
    previous_state.run = SPEC
    previous_state.fault = Fault(text="died")
    previous_state.greeted = True
    successor = workers.ordered(order(), tried=True)
    assert (successor.run, successor.fault, successor.greeted) == (SPEC, None, False)
    assert workers.of(previous_state.identity) is None
    assert workers.of(successor.identity) is workers.on_lane("cpu:0") is successor


def test_a_reported_failure_is_kept_after_invalid_messages():
    worker = Workers().ordered(order(), tried=True)
    worker.failed(Failed(summary="no GPU", traceback="at line 1", again=False, stops=True))
    worker.reject("keeps sending invalid messages")
    assert worker.fault == Fault(
        text="keeps sending invalid messages", traceback="at line 1", retryable=False, stops_experiment=True
    )
