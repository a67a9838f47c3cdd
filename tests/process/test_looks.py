"""Looks, early stops, open-ended plans and extensions: real coordinator and sockets, workers without torch.

Unpaired fake groups differ by 10 points per letter of the alphabet, with noise of one milestone: `b` beats `a` at any
look, `a1` and `a2` are an A/A.
"""

from __future__ import annotations

import msgspec
import pytest
from support.fake_plans import plan

from esper_ab.analysis.observe import followed
from esper_ab.contracts.errors import UsageError
from esper_ab.control.experiment_run import extend, run
from esper_ab.control.rules import looks
from esper_ab.design.design import Contrast
from esper_ab.execution.going_on import extension
from esper_ab.journal.events import ExperimentContinued, LookTaken, PlanExtended, RunStarted
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import begin
from esper_ab.journal.load import load
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.readers.status import status_text

LAUNCHER = InlineLauncher("support.fake_worker:main_in_thread")


def conducted(experiment_dir, **settings):
    small = {"n_envs": 1, "episodes": 1, "unpaired": True, "margin": 0.001}  # an A/A is never equivalent
    run(plan(**(small | settings)), experiment_dir, LAUNCHER, ())
    replayed(experiment_dir)
    return load(experiment_dir).history


def replayed(experiment_dir):
    """The records so far give each look and extension that the coordinator recorded."""
    first, *events = read(experiment_dir / JOURNAL_NAME)
    history = begin(first)
    for event in events:
        if isinstance(event, LookTaken | PlanExtended):
            assert event in looks.due(history)
        history.add(event)


def of(kind, experiment_dir):
    return [event for event in read(experiment_dir / JOURNAL_NAME) if isinstance(event, kind)]


def started(experiment_dir, group):
    return {event.run.replicate for event in of(RunStarted, experiment_dir) if event.run.group_id == group}


def test_a_clear_difference_ends_at_the_first_look(tmp_path):
    history = conducted(tmp_path, groups=("a", "b"), seeds=10, looks=(6, 10))
    (look,) = of(LookTaken, tmp_path)
    assert (look.replicates, look.decided) == (6, (Contrast(a="a", b="b"),))
    assert set(look.leaving) == {"a", "b"}
    assert started(tmp_path, "a") == started(tmp_path, "b") == set(range(6))
    assert [run.state for run in history.of_group("a")] == ["finished"] * 6 + ["left out"] * 4
    assert history.ended.status == "finished"
    (course,) = followed(history).courses.values()
    assert (course.decision, course.decided_at, course.direction) == ("crossed", 6, -1)


def test_it_ends_there_however_many_looks_would_follow(tmp_path):
    history = conducted(tmp_path, groups=("a", "b"), seeds=10, looks=(6, 8, 10))
    assert [look.replicates for look in history.looks] == [6]
    assert history.ended.status == "finished"


def test_no_block_starts_before_the_look_that_could_make_it_superfluous(tmp_path):
    conducted(tmp_path, groups=("a1", "a2"), cores=4, seeds=10, looks=(6, 10))
    seen, looked = set(), 0
    for event in read(tmp_path / JOURNAL_NAME):
        if isinstance(event, LookTaken):
            looked = event.replicates
        if isinstance(event, RunStarted):
            seen.add(event.run.replicate)
            assert event.run.replicate < 6 or looked >= 6
    assert seen == set(range(10))


def test_without_early_stop_a_decided_comparison_goes_on(tmp_path):
    history = conducted(tmp_path, groups=("a", "b"), seeds=10, looks=(6, 10), early_stop=False)
    assert [look.replicates for look in of(LookTaken, tmp_path)] == [6, 10]
    assert all(look.leaving == () for look in history.looks)
    assert started(tmp_path, "b") == set(range(10))
    (course,) = followed(history).courses.values()
    assert (course.decided_at, len(course.looks)) == (6, 2)


def test_a_group_whose_comparisons_are_decided_leaves_later_blocks(tmp_path):
    groups = {"groups": ("a1", "a2", "b", "w"), "control": "a1", "untested": ("w",)}
    conducted(tmp_path, **groups, cores=4, seeds=10, looks=(6, 10))
    first, last = of(LookTaken, tmp_path)
    assert (first.decided, first.leaving) == ((Contrast(a="b", b="a1"),), ("b",))
    assert started(tmp_path, "b") == set(range(6))
    assert started(tmp_path, "a1") == started(tmp_path, "a2") == started(tmp_path, "w") == set(range(10))
    assert last.replicates == 10


def test_an_open_ended_plan_adds_blocks_until_it_is_decided(tmp_path):
    history = conducted(tmp_path, groups=("a", "b"), seeds=2, open_ended=True)
    assert len(of(PlanExtended, tmp_path)) >= 2
    assert history.looks[-1].decided == (Contrast(a="a", b="b"),)
    (course,) = followed(history).courses.values()
    assert course.decided_at >= 6
    assert course.looks[-1].e >= 20.0


def test_an_open_ended_plan_of_one_computation_twice_ends_by_itself(tmp_path):
    history = conducted(tmp_path, groups=("a1", "a2"), seeds=6, open_ended=True, unpaired=False)
    assert (history.replicates, history.ended.status) == (6, "finished")


def test_extending_a_finished_plan_goes_on_where_it_ended_under_the_stricter_rule(tmp_path):
    before = conducted(tmp_path, groups=("a1", "a2"), seeds=6, rng_seed=1)
    extend(tmp_path, lambda history: extension(tmp_path, history, 9), LAUNCHER, ())
    history = load(tmp_path).history
    assert (history.replicates, history.ended.status) == (9, "finished")
    assert started(tmp_path, "a1") == set(range(9))
    assert len(of(ExperimentContinued, tmp_path)) == 1
    assert {(worker.worker, worker.incarnation) for worker in history.workers} >= {("w00", 1), ("w00", 2)}
    (course,) = followed(history).courses.values()
    assert [look.bound_e for look in course.looks] == [None, *[pytest.approx(100.0)] * 3]
    for name, kept in before.runs.items():
        assert history.runs[name].evaluation == kept.evaluation
    # what was added is what a longer plan would have run, bit for bit
    longer = tmp_path / "longer"
    longer.mkdir()
    planned = conducted(longer, groups=("a1", "a2"), seeds=9, rng_seed=1)
    assert history.runs["a2/8"].evaluation.digest == planned.runs["a2/8"].evaluation.digest


def test_what_cannot_be_extended_says_why(tmp_path):
    history = conducted(tmp_path, groups=("a", "b"), seeds=6)
    with pytest.raises(UsageError, match="every comparison is decided"):
        extend(tmp_path, lambda there: extension(tmp_path, there, 8), LAUNCHER, ())
    with pytest.raises(UsageError, match="has 6 already; name how many it is to have in all"):
        extension(tmp_path, history, 6)
    ended = history.ended
    history.ended = None
    with pytest.raises(UsageError, match="only a finished one can be extended"):
        extension(tmp_path, history, 8)
    history.ended = msgspec.structs.replace(ended, status="interrupted")
    with pytest.raises(UsageError, match="the experiment is interrupted"):
        extension(tmp_path, history, 8)
    assert load(tmp_path).history.ended.status == "finished"  # a refusal leaves the journal as it was


def test_a_stop_for_futility_is_journalled_like_any_decision_and_ends_what_nobody_needs(tmp_path):
    plain = {"groups": ("a1", "a2"), "seeds": 10, "looks": (6, 10), "margin": 8.0, "futility": 0.8}
    history = conducted(tmp_path, **plain)
    (look,) = of(LookTaken, tmp_path)
    one = Contrast(a="a1", b="a2")
    assert (look.replicates, look.decided, look.futile, set(look.leaving)) == (6, (), (one,), {"a1", "a2"})
    assert look.outcome == "decided nothing; stopped for futility: a1 - a2"
    assert [run.state for run in history.of_group("a1")] == ["finished"] * 6 + ["left out"] * 4
    assert history.ended.status == "finished"
    (course,) = followed(history).courses.values()
    assert (course.decision, course.decided_at) == ("futile", 6)
    assert "stopped for futility: a1 - a2" in status_text(tmp_path)


def test_what_was_stopped_for_futility_is_what_the_journal_says_and_what_a_reader_finds(tmp_path):
    groups = {"groups": ("a1", "a2", "a3"), "cores": 3, "seeds": 10, "margin": 6.0, "futility": 0.8}
    history = conducted(tmp_path, **groups, looks=(6, 8, 10), rng_seed=3)
    courses = followed(history).courses
    stopped = {one: course for one, course in courses.items() if course.decision == "futile"}
    assert stopped
    assert {one for look in history.looks for one in look.futile} == set(stopped)
    again = followed(load(tmp_path).history).courses
    assert {one: again[one] for one in stopped} == stopped
