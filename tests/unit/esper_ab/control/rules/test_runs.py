"""When a death means another start, when the end of a replicate, when the end of the experiment."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_plans import plan
from support.fake_worker import report_of
from support.journals import planted_effect, started

from esper_ab.control.rules.runs import NOWHERE, Deaths, arrival, assignment, event_of, same_record
from esper_ab.control.rules.validation import Rejected
from esper_ab.journal.fold import begin, fold

SPEC = plan().blocks[0].runs[0]


@given(milestones=st.lists(st.integers(0, 3), max_size=20).map(sorted), most=st.integers(1, 4))
def test_a_run_is_given_up_at_the_last_death_without_progress_and_not_before(milestones, most):
    deaths = Deaths(most)
    for n, milestone in enumerate(milestones):
        assert deaths.in_run("a/0", milestone) == (milestones[: n + 1].count(milestone) >= most)


def test_deaths_without_a_run_count_until_the_worker_gets_somewhere():
    deaths = Deaths(3)
    assert [deaths.outside("cpu:0"), deaths.outside("cpu:1"), deaths.outside("cpu:0")] == [False] * 3
    deaths.got_on("cpu:0")
    assert [deaths.outside("cpu:0") for _ in range(3)] == [False, False, True]


def test_three_replicates_given_up_for_one_reason_whatever_its_numbers():
    deaths = Deaths(3)
    reasons = ("no sign of life for 61 s", "was killed", "no sign of life for 75 s", "no sign of life for 103 s")
    assert [deaths.gave_up(reason) for reason in reasons] == [False, False, False, True]


def test_an_account_is_the_same_whatever_its_numbers_and_only_within_one_run():
    deaths = Deaths(3)
    runs, accounts = ("a/0", "a/0", "b/0", "a/0", "a/0"), ("w1/1: no", "w1/2: no", "w2/1: no", "w1/3: yes", "w1/4: no")
    assert list(map(deaths.alike, runs, accounts)) == [False, True, False, False, False]


def recorded_up_to(milestone):
    history = begin(started(plan()))
    for done in range(milestone + 1):
        history.add(event_of(report_of(SPEC, done)))
    return history.runs[SPEC.ref.name]


@pytest.mark.parametrize(("recorded", "stands", "milestone", "why"), [
    (1, NOWHERE, 2, "reports episode 1 of a/0, but warm-up comes next"),  # a record before it is ready
    (1, 0, 2, "reports episode 1 of a/0, but episode 0 comes next"),
    (2, 1, 3, "reports evaluation of a/0, but episode 1 comes next"),
])  # fmt: skip
def test_nobody_reports_a_point_out_of_turn(recorded, stands, milestone, why):
    with pytest.raises(Rejected, match=why):
        arrival(recorded_up_to(recorded), stands, milestone, report_of(SPEC, milestone))


def test_nobody_is_ready_beyond_what_is_recorded_or_twice():
    ready = report_of(SPEC, 0)
    with pytest.raises(Rejected, match="says it is ready after 2 episodes of a/0, but the records end after 1"):
        arrival(recorded_up_to(1), NOWHERE, 2, ready)
    with pytest.raises(Rejected, match="reports episode 1 of a/0, but episode 1 comes next"):
        arrival(recorded_up_to(2), 1, 2, ready)
    assert arrival(recorded_up_to(2), 1, 0, ready) == "repeat"


@pytest.mark.parametrize("milestone", range(4))
def test_a_repeat_agrees_with_the_record_if_its_digest_does_and_a_ready_always(milestone):
    report, run = report_of(SPEC, milestone), recorded_up_to(3)
    assert same_record(run, milestone, report)
    if milestone:
        other = msgspec.structs.replace(report, record=msgspec.structs.replace(report.record, digest="another"))
        assert not same_record(run, milestone, other)


def test_an_order_offers_the_newest_checkpoints_first():
    run = fold(planted_effect()).runs["shaped/0"]
    assert assignment(run, None).milestone == run.spec.episodes + 1
    fresh = recorded_up_to(NOWHERE)
    fresh.checkpoints = list(range(9))
    assert [assignment(fresh, None).checkpoints, assignment(fresh, None).milestone] == [(8, 7, 6), 0]
