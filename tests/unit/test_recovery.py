"""When a death means another start, when the end of a replicate, when the end of the experiment."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_plans import plan
from support.fake_worker import report_of
from support.journals import Synthetic, failed_run, planted_effect

from esper_ab.control.intake import Rejected
from esper_ab.control.recovery import Deaths, any_complete, nothing_left
from esper_ab.control.runs import NOWHERE, Run, in_progress, run_of
from esper_ab.journal.events import Ledger, RunEvaluated
from esper_ab.journal.fold import fold

SPEC = plan().blocks[0].runs[0]
LOST = [Ledger(category="dropped_pair", run=run, episode=None, detail="") for run in ("shaped/0", "simplified/0")]


@given(points=st.lists(st.integers(0, 3), max_size=20).map(sorted), most=st.integers(1, 4))
def test_a_run_is_given_up_at_the_last_death_without_progress_and_not_before(points, most):
    deaths = Deaths(most)
    for n, point in enumerate(points):
        assert deaths.in_run("a/0", point) == (points[: n + 1].count(point) >= most)


def test_deaths_of_one_run_are_not_those_of_another():
    deaths = Deaths(3)
    assert not any(deaths.in_run(run, 1) for run in ("a/0", "b/0", "a/1", "b/1", "a/0", "b/0"))


def test_deaths_without_a_run_count_until_the_worker_gets_somewhere():
    deaths = Deaths(3)
    assert [deaths.outside("cpu:0"), deaths.outside("cpu:1"), deaths.outside("cpu:0")] == [False] * 3
    deaths.got_on("cpu:0")
    assert [deaths.outside("cpu:0") for _ in range(3)] == [False, False, True]


def test_three_replicates_given_up_for_one_reason_whatever_its_numbers():
    deaths = Deaths(3)
    reasons = ("no sign of life for 61 s", "was killed", "no sign of life for 75 s", "no sign of life for 103 s")
    assert [deaths.gave_up(reason) for reason in reasons] == [False, False, False, True]


def test_what_is_complete_and_what_is_left():
    assert not any_complete(fold(planted_effect()[:1]))
    assert any_complete(fold([*planted_effect(), *LOST]))
    assert not nothing_left(fold([*planted_effect(), *LOST]))
    alone = Synthetic(replicates=1).events()
    begun = [event for event in alone if not isinstance(event, RunEvaluated)]
    assert not nothing_left(fold(begun))
    assert nothing_left(fold([*begun, *LOST]))
    assert not nothing_left(fold(alone))


def taken_up(recorded, stands=NOWHERE):
    run = Run(SPEC)
    for point in range(recorded + 1):
        run.arrive(report_of(SPEC, point))
    run.stands = stands
    return run


@pytest.mark.parametrize("recorded", range(4))
@pytest.mark.parametrize("back", range(4))
def test_points_done_again_are_told_from_new_ones(recorded, back):
    run, start = taken_up(recorded), max(0, min(recorded, SPEC.episodes) - back)
    heard = [run.arrive(msgspec.structs.replace(report_of(SPEC, 0), point=start))]
    heard += [run.arrive(report_of(SPEC, point)) for point in range(start + 1, SPEC.episodes + 2)]
    again = recorded - start + 1
    assert heard == ["again"] * again + ["new"] * (len(heard) - again)
    assert run.complete
    assert run.arrive(report_of(SPEC, SPEC.episodes + 1)) == "repeat"


@pytest.mark.parametrize(("recorded", "stands", "point", "why"), [
    (1, NOWHERE, 2, "its next one is 0"),  # a record before it is ready
    (1, 0, 2, "its next one is 1"),
    (2, 1, 3, "its next one is 2"),
])  # fmt: skip
def test_nobody_reports_a_point_out_of_turn(recorded, stands, point, why):
    with pytest.raises(Rejected, match=why):
        taken_up(recorded, stands).arrive(report_of(SPEC, point))


def test_nobody_is_ready_beyond_what_is_recorded_or_twice():
    ready = report_of(SPEC, 0)
    with pytest.raises(Rejected, match="is ready at point 2 of a/0, but point 1 is the last one"):
        taken_up(1).arrive(msgspec.structs.replace(ready, point=2))
    with pytest.raises(Rejected, match="reports point 2"):
        taken_up(2, 1).arrive(msgspec.structs.replace(ready, point=2))
    assert taken_up(2, 1).arrive(ready) == "repeat"


def test_an_order_offers_the_newest_checkpoints_first():
    events = planted_effect()
    run = run_of(fold(events).runs["shaped/0"])
    assert run.order(()).point == run.spec.episodes + 1
    assert [Run(SPEC).order(range(9)).checkpoints, Run(SPEC).order(()).point] == [(8, 7, 6), 0]


def test_what_is_in_progress_in_a_history():
    history = fold(failed_run(kept=3))
    names = [[run.ref.run for run in in_progress(history, block)] for block in history.blocks]
    assert [sorted(runs) for runs in names] == [[], [], [], ["shaped/3", "simplified/3"], [], []]
    history.runs["shaped/3"].lost = True
    assert not in_progress(history, history.blocks[3])
