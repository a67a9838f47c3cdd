"""Reports of a run: their order, repeats, and assignments with checkpoints."""

import msgspec
import pytest
from support.journals.ready_journals import planted_effect
from support.journals.synthetic import started
from support.plans.fake_plans import plan
from support.workers.fake_worker import report_of

from esper_ab.control.rules.runs import NOWHERE, arrival, assignment, event_of, same_record
from esper_ab.control.rules.validation import Rejected
from esper_ab.journal.fold import begin, fold

SPEC = plan().blocks[0].runs[0]


def recorded_up_to(milestone):
    history = begin(started(plan()))
    for recorded_milestone in range(milestone + 1):
        history.add(event_of(report_of(SPEC, recorded_milestone)))
    return history.runs[SPEC.ref.name]


@pytest.mark.parametrize(
    ("recorded_milestone", "stands", "milestone", "reason"),
    [
        (1, NOWHERE, 2, "reports episode 1 of a/0, but warm-up comes next"),  # a record before it is ready
        (1, 0, 2, "reports episode 1 of a/0, but episode 0 comes next"),
        (2, 1, 3, "reports evaluation of a/0, but episode 1 comes next"),
    ],
)
def test_a_report_out_of_turn_is_rejected(recorded_milestone, stands, milestone, reason):
    with pytest.raises(Rejected, match=reason):
        arrival(recorded_up_to(recorded_milestone), stands, milestone, report_of(SPEC, milestone))


def test_a_report_that_skips_or_repeats_an_episode_is_rejected():
    ready_report = report_of(SPEC, 0)
    with pytest.raises(Rejected, match="says it is ready after 2 episodes of a/0, but the records end after 1"):
        arrival(recorded_up_to(1), NOWHERE, 2, ready_report)
    with pytest.raises(Rejected, match="reports episode 1 of a/0, but episode 1 comes next"):
        arrival(recorded_up_to(2), 1, 2, ready_report)
    assert arrival(recorded_up_to(2), 1, 0, ready_report) == "repeat"


@pytest.mark.parametrize("milestone", range(4))
def test_reports_with_the_same_digest_count_as_the_same_record(milestone):
    report = report_of(SPEC, milestone)
    run = recorded_up_to(3)
    assert same_record(run, milestone, report)
    if milestone:
        different_report = msgspec.structs.replace(
            report, record=msgspec.structs.replace(report.record, digest="another")
        )
        assert not same_record(run, milestone, different_report)


def test_an_assignment_offers_the_newest_checkpoints_first():
    run = fold(planted_effect()).runs["shaped/0"]
    assert assignment(run, None).milestone == run.spec.episodes + 1
    fresh_history = recorded_up_to(NOWHERE)
    fresh_history.checkpoints = list(range(9))
    assert [assignment(fresh_history, None).checkpoints, assignment(fresh_history, None).milestone] == [(8, 7, 6), 0]
