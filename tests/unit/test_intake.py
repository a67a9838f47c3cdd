"""What the coordinator believes of a report."""

from __future__ import annotations

import math

import msgspec
import pytest
from support import fake_plans
from support.fake_worker import TIMING, report_of

from esper_ab.contracts.messages import PROTOCOL, Hello, Lane, WorkerOrder
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control.intake import Rejected, check_hello, digest_of, point_of
from esper_ab.control.turns import turns

SPEC, OTHER = fake_plans.plan(n_envs=2).blocks[0].runs
ORDER = WorkerOrder(
    endpoint="", worker="w00", incarnation=2, lane=Lane(name="cuda:0", devices=("cuda:0",), uuids=("GPU-1",)),
    arithmetic=Arithmetic(), run_dir="", log_file="",
)
HELLO = Hello(worker="w00", incarnation=2, protocol=PROTOCOL, pid=1, uuids=("GPU-1",), torch_version="", sources="")


def changed(report, **fields):
    return msgspec.structs.replace(report, record=msgspec.structs.replace(report.record, **fields))


@pytest.mark.parametrize("point", range(4))
def test_a_right_report_arrives_at_its_point(point):
    assert point_of(report_of(SPEC, point), SPEC) == point


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (report_of(OTHER, 1), "but was assigned"),
        (changed(report_of(SPEC, 1), run=OTHER.ref), "sent a record of"),
        (changed(report_of(SPEC, 1), episode=2), "sent episode 2 of 2"),
        (changed(report_of(SPEC, 1), episode=-1), "sent episode -1 of 2"),
        (changed(report_of(SPEC, 1), envs=()), r"environments \[\] instead of 0 to 1"),
        (changed(report_of(SPEC, 3), episodes=report_of(SPEC, 3).record.episodes[:2]), r"environments \[0\] instead"),
        (msgspec.structs.replace(report_of(SPEC, 0), warm_up_s=math.inf), "not finite: warm_up_s"),
        (
            changed(report_of(SPEC, 2), timing=msgspec.structs.replace(TIMING, total_s=math.nan)),
            r"not finite: record\.timing\.total_s",
        ),
    ],
)
def test_a_report_that_cannot_be_right_is_rejected(report, why):
    with pytest.raises(Rejected, match=why):
        point_of(report, SPEC)


def test_a_digest_tells_results_apart():
    assert digest_of(report_of(SPEC, 1)) != digest_of(report_of(SPEC, 2))
    assert digest_of(report_of(SPEC, 0)) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"protocol": PROTOCOL + 1}, "speaks protocol"),
        ({"incarnation": 1}, "calls itself w00/1"),
        ({"uuids": ("GPU-2",)}, "has devices"),
    ],
)
def test_a_worker_that_is_not_the_one_ordered_is_rejected(change, why):
    check_hello(HELLO, ORDER)
    with pytest.raises(Rejected, match=why):
        check_hello(msgspec.structs.replace(HELLO, **change), ORDER)


def test_turns_are_drawn_afresh_and_fairly():
    runs = ("a/0", "b/0", "c/0")
    drawn = turns(7, 0, runs, 6000)
    assert all(sorted(turn) == sorted(runs) for turn in drawn)
    first = [turn[0] for turn in drawn]
    assert all(abs(first.count(run) - 2000) < 200 for run in runs)  # 5.5 standard deviations
    assert turns(7, 0, runs, 5) == drawn[:5]
    assert turns(7, 1, runs, 50) != drawn[:50]


def test_turns_follow_positions_and_not_names():
    names = {"a/0": "x/0", "b/0": "y/0"}
    assert [tuple(names[run] for run in turn) for turn in turns(7, 0, ("a/0", "b/0"), 20)] == list(
        turns(7, 0, ("x/0", "y/0"), 20)
    )
