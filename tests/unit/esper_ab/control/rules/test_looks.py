"""Blocks that wait for a look, and the consequences of a look.

Unpaired fake groups differ by 10 points per letter: `b` beats `a` at any look, `a1` and `a2` are an A/A.
"""

import pytest
from msgspec.structs import replace
from support.journals.synthetic import started
from support.plans import fake_plans
from support.worlds.machine_world import World

from esper_ab.analysis.observe import progress_of
from esper_ab.control.rules.looks import due, may_start
from esper_ab.design.design import Contrast
from esper_ab.journal.events import EpisodeRecorded, LookTaken, PlanExtended, RunEvaluated, RunStarted
from esper_ab.journal.fold import begin


@pytest.mark.parametrize(("early_stop", "first_waiting"), [(True, 14), (False, 20)])
def test_a_block_waits_for_an_earlier_look_only_if_the_look_may_stop_groups(early_stop, first_waiting):
    history = begin(started(fake_plans.plan(seeds=20, early_stop=early_stop)))
    assert history.design.looks == (14, 20)
    assert [may_start(history, block) for block in history.blocks] == [n < first_waiting for n in range(20)]


SMALL = {"n_envs": 1, "episodes": 1, "unpaired": True, "margin": 0.001}  # an A/A is never equivalent


def history_at_end(**settings):
    """Return the history of such an experiment; check that its looks and extensions follow from its records."""
    first_event, *events = World(fake_plans.plan(**(SMALL | settings))).to_the_end().journal
    history = begin(first_event)
    for event in events:
        if isinstance(event, LookTaken | PlanExtended):
            assert event in due(history)
        if isinstance(event, RunStarted) and history.design.early_stop:
            open_looks = set(history.design.looks) - {look.replicates for look in history.looks}
            assert event.run.replicate < min(open_looks, default=100)
        history.add(event)
    return history


def evaluated_seeds(history, group):
    return {run.ref.replicate for run in history.of_group(group) if run.evaluation is not None}


def test_an_experiment_with_a_clear_difference_ends_at_the_first_look():
    history = history_at_end(groups=("a", "b"), seeds=10, looks=(6, 8, 10))
    (look,) = history.looks
    assert (look.replicates, look.decided) == (6, (Contrast(a="a", b="b"),))
    assert set(look.leaving) == {"a", "b"}
    assert [run.state for run in history.of_group("a")] == ["finished"] * 6 + ["left out"] * 4
    assert evaluated_seeds(history, "b") == set(range(6))
    (progress,) = progress_of(history).comparisons.values()
    assert (progress.decision, progress.decided_at, progress.direction) == ("crossed", 6, -1)


def test_a_decided_comparison_continues_if_early_stopping_is_off():
    history = history_at_end(groups=("a", "b"), seeds=10, looks=(6, 10), early_stop=False)
    assert [(look.replicates, look.leaving) for look in history.looks] == [(6, ()), (10, ())]
    assert evaluated_seeds(history, "b") == set(range(10))
    (progress,) = progress_of(history).comparisons.values()
    assert (progress.decided_at, len(progress.looks)) == (6, 2)


def test_a_group_with_only_decided_comparisons_leaves_later_blocks():
    groups = {"groups": ("a1", "a2", "b", "w"), "control": "a1", "untested": ("w",)}
    history = history_at_end(**groups, cores=4, seeds=10, looks=(6, 10))
    first_look, last_look = history.looks
    assert (first_look.decided, first_look.leaving) == ((Contrast(a="b", b="a1"),), ("b",))
    assert evaluated_seeds(history, "b") == set(range(6))
    assert (
        evaluated_seeds(history, "a1")
        == evaluated_seeds(history, "a2")
        == evaluated_seeds(history, "w")
        == set(range(10))
    )
    assert last_look.replicates == 10


def test_an_open_ended_plan_adds_blocks_until_its_comparison_is_decided():
    history = history_at_end(groups=("a", "b"), seeds=2, open_ended=True)
    assert history.replicates >= 6
    assert history.looks[-1].decided == (Contrast(a="a", b="b"),)
    (progress,) = progress_of(history).comparisons.values()
    assert progress.decided_at >= 6
    assert progress.looks[-1].e >= 20.0
    identical_history = history_at_end(groups=("a1", "a2"), seeds=6, open_ended=True, unpaired=False)
    assert identical_history.replicates == 6, "a comparison of identical computations ends"


def test_a_stop_for_futility_ends_its_groups():
    history = history_at_end(groups=("a1", "a2"), seeds=10, looks=(6, 10), margin=8.0, futility=0.8)
    (look,) = history.looks
    contrast = Contrast(a="a1", b="a2")
    assert (look.replicates, look.decided, look.futile, set(look.leaving)) == (6, (), (contrast,), {"a1", "a2"})
    assert look.outcome == "decided nothing; stopped for futility: a1 - a2"
    assert [run.state for run in history.of_group("a1")] == ["finished"] * 6 + ["left out"] * 4
    (progress,) = progress_of(history).comparisons.values()
    assert (progress.decision, progress.decided_at) == ("futile", 6)


def test_an_experiment_with_one_seed_has_a_look():
    world = World(fake_plans.plan(seeds=1)).to_the_end()
    assert [event.replicates for event in world.journal if isinstance(event, LookTaken)] == [1]


def with_equal_digests(event):
    """Return the event as if the records of a seed had one digest in every group."""
    if isinstance(event, EpisodeRecorded | RunEvaluated):
        digest = f"{event.record.run.replicate:064}"
        return replace(event, record=replace(event.record, digest=digest))
    return event


def test_a_plan_ends_early_where_all_records_of_its_groups_agree():
    plan = fake_plans.plan(groups=("a1", "a2"), seeds=8, looks=(8,), identical_after=6, n_envs=1, episodes=1, cores=4)
    first_event, *events = World(plan).to_the_end().journal
    history = begin(first_event)
    for event in events:
        history.add(with_equal_digests(event))
        if (recorded := due(history)) != ():
            break
    (look,) = recorded
    assert (look.replicates, look.identical, set(look.leaving)) == (6, (Contrast(a="a1", b="a2"),), {"a1", "a2"})
    assert look.outcome == "all records agree: a1 - a2"
    history.add(look)
    assert not any(run.expected for run in history.runs.values() if run.ref.replicate >= 6)
    assert due(history) == ()


PARAMS = "lower params_added margin 20%"


@pytest.mark.parametrize(
    ("guardrails", "expected_ends"),
    [
        ((PARAMS,), [6]),
        ((PARAMS, "lower crashes margin 0.5"), [15]),
        (("lower crashes margin 0.3",), [18]),
        ((PARAMS, "lower crashes margin 0.001"), []),
    ],
)
def test_groups_whose_records_agree_end_the_plan_once_their_guardrails_hold(guardrails, expected_ends):
    """Crashes are in no record, so they are tested, at planned looks; others are equal where records are."""
    seeds = {"seeds": 20, "looks": (15, 18, 20), "identical_after": 6}
    first_event, *events = (
        World(fake_plans.plan(groups=("a1", "a2"), n_envs=1, episodes=1, cores=4, guardrails=guardrails, **seeds))
        .to_the_end()
        .journal
    )
    history = begin(first_event)
    ends = []
    for event in events:
        history.add(with_equal_digests(event))
        ends += [item.replicates for item in due(history) if isinstance(item, LookTaken) and item.leaving]
        if ends:
            break
    assert ends == expected_ends


def test_blocks_wait_for_no_early_end_if_a_guardrail_needs_a_look():
    settings = {"seeds": 20, "looks": (15, 20), "identical_after": 6}
    for guardrails, first_waiting in ((("lower crashes margin 0.5",), 15), ((PARAMS,), 6)):
        history = begin(started(fake_plans.plan(guardrails=guardrails, **settings)))
        assert [may_start(history, block) for block in history.blocks] == [n < first_waiting for n in range(20)]


@pytest.mark.parametrize("change", [{"identical_after": 0}, {}])
def test_other_plans_go_on_to_their_looks(change):
    settings = {"groups": ("a1", "a2"), "unpaired": False, "seeds": 8, "looks": (8,), "identical_after": 6}
    history = history_at_end(**(settings | change))
    assert [look.replicates for look in history.looks] == [8]


def test_blocks_wait_until_it_is_known_whether_the_first_ones_agree():
    history = begin(started(fake_plans.plan(seeds=20, identical_after=6)))
    assert [may_start(history, block) for block in history.blocks] == [n < 6 for n in range(20)]
