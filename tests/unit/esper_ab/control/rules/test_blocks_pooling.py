"""A normaliser that the groups share: how moments are merged, what is believed of them, who may not ask for it."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fake_plans
from support.audited import found
from support.fake_worker import moments, report_of
from support.journals import planted_effect, started, three_groups

from esper_ab.contracts.records import Moments
from esper_ab.contracts.settings import ControllerSettings, GroupSettings
from esper_ab.control.rules.blocks import check_width, pooled, to_release
from esper_ab.control.rules.runs import event_of
from esper_ab.control.rules.validation import OBSERVED_AT_MOST, Rejected, milestone_of
from esper_ab.journal.events import EpisodeRecorded, MilestoneReleased
from esper_ab.journal.fold import begin, fold
from esper_ab.plan.notes import limits
from esper_ab.settings.experiment import Group

replace = msgspec.structs.replace
PLAN = fake_plans.plan(share_observation_norm=True)
A, B = PLAN.blocks[0].runs


def of(rows):
    """Moments of rows [N, columns]."""
    mean = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
    return Moments(
        count=len(rows), mean=tuple(mean.tolist()), squares=tuple(((rows - mean) ** 2).sum(axis=0).tolist())
    )


@st.composite
def parts(draw):
    """Rows of some learners, three columns; some learners have seen nothing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(any))
    offsets = draw(st.lists(st.floats(-2, 2), min_size=len(sizes), max_size=len(sizes)))
    return [rng.standard_normal((size, 3)) * 0.5 + offset for size, offset in zip(sizes, offsets, strict=True)]


@given(parts())
def test_merged_moments_are_those_of_all_rows_together(rows):
    merged, whole = pooled([of(part) for part in rows]), of(np.concatenate(rows))
    assert merged.count == whole.count
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(merged.squares, whole.squares, rtol=1e-10, atol=1e-12)


@given(parts(), st.randoms())
def test_the_order_of_the_groups_does_not_move_a_bit(rows, random):
    told = [of(part) for part in rows]
    shuffled = random.sample(told, len(told))
    assert pooled(shuffled) == pooled(told)


@given(parts(), st.integers(1, 4))
def test_equal_groups_keep_their_mean_to_the_bit_and_one_group_is_itself(rows, times):
    one = of(np.concatenate(rows))
    assert pooled([one]) == one
    merged = pooled([one] * times)
    assert (merged.count, merged.mean) == (times * one.count, one.mean)


# --- what a release carries ---


def history_at(milestone, plan=PLAN):
    """Both runs have recorded everything up to `milestone`."""
    history = begin(started(plan))
    for done in range(1, milestone + 1):
        for spec in plan.blocks[0].runs:
            history.add(event_of(report_of(spec, done)))
    return history


def test_a_release_carries_the_moments_of_all_learners_after_every_episode_and_only_there():
    runs = [spec.ref.name for spec in (A, B)]
    for milestone in (1, 2):
        assert to_release(history_at(milestone), 0, milestone, runs) == pooled(
            [moments(A, milestone), moments(B, milestone)]
        )
    for milestone in (0, 3):
        assert to_release(history_at(2), 0, milestone, runs) is msgspec.UNSET
    plain = fake_plans.plan()
    assert to_release(history_at(1, plain), 0, 1, runs) is msgspec.UNSET


def test_what_was_released_once_stays():
    history = history_at(2)
    first = moments(A, 1)
    history.add(MilestoneReleased(replicate=0, milestone=1, runs=(A.ref.name,), observations=first))
    assert to_release(history, 0, 1, [A.ref.name, B.ref.name]) == first
    assert to_release(history, 0, 2, [A.ref.name, B.ref.name]) != first


# --- what is believed ---


def told(**changes):
    return replace(report_of(A, 1), observations=replace(moments(A, 1), **changes))


@pytest.mark.parametrize(("report", "why"), [
    (replace(report_of(A, 1), observations=None), "sent no moments"),
    (told(squares=(1.0,)), "4 means and 1 sums of squares"),
    (told(mean=(0.0, math.nan, 0.0, 0.0)), "cannot have"),
    (told(mean=(0.0, 1e300, 0.0, 0.0)), "cannot have"),
    (told(squares=(0.0, -1e-9, 0.0, 0.0)), "cannot have"),
    (told(squares=(0.0, math.inf, 0.0, 0.0)), "cannot have"),
])  # fmt: skip
def test_moments_that_cannot_be_are_rejected(report, why):
    with pytest.raises(Rejected, match=why):
        milestone_of(report, A, fake_plans.OPEN)


def test_moments_that_nobody_asked_for_are_rejected():
    spec = fake_plans.plan().blocks[0].runs[0]
    with pytest.raises(Rejected, match="not shared"):
        milestone_of(replace(report_of(spec, 1), observations=moments(spec, 1)), spec, fake_plans.OPEN)


def test_moments_of_another_width_than_the_other_learners_are_rejected():
    history, other = history_at(1), report_of(B, 2)
    check_width(history, other)
    with pytest.raises(Rejected, match="moments of 2 columns where a/0 observes 4"):
        check_width(history, replace(other, observations=of(np.ones((3, 2)))))


def test_whatever_is_believed_can_be_merged():
    most = Moments(count=2**53, mean=(OBSERVED_AT_MOST,), squares=(2**53 * OBSERVED_AT_MOST**2,))
    least = replace(most, mean=(-OBSERVED_AT_MOST,))
    assert all(math.isfinite(value) for value in (*pooled([most, least]).mean, *pooled([most, least]).squares))


# --- who takes part, and what is said of it ---


def test_who_does_not_learn_has_no_moments_to_share():
    wait = Group(name="w", settings=GroupSettings(controller=ControllerSettings(name="wait")))
    learners = fake_plans.plan(cores=3, share_observation_norm=True).experiment
    (block,) = fake_plans.plan_of(replace(learners, groups=(*learners.groups, wait))).blocks
    assert {spec.ref.group_id: spec.share_observation_norm for spec in block.runs} == {"a": True, "b": True, "w": False}


def test_the_plan_says_that_groups_are_coupled_and_that_an_early_end_changes_the_company():
    def said(*names, **settings):
        experiment = fake_plans.plan(cores=4, groups=names, **settings).experiment
        written = limits(experiment, fake_plans.machine(4), positions_matter=False)
        return [note for note in written if "share" in note]

    assert said("a", "b") == []
    coupled, company = said("a", "b", "c", share_observation_norm=True)
    assert "a, b, c normalise observations by their joint moments, so they are coupled" in coupled
    assert "--no-early-stop keeps all groups" in company
    assert len(said("a", "b", "c", share_observation_norm=True, early_stop=False)) == 1


def sharing(events, which=lambda record: True):
    """The journal of an experiment that shared; `which` records hold moments."""
    plan = events[0].plan
    shared = replace(plan, experiment=replace(plan.experiment, share_observation_norm=True))
    some = of(np.ones((2, 2)))
    return [
        replace(event, observations=some) if isinstance(event, EpisodeRecorded) and which(event.record) else event
        for event in (replace(events[0], plan=shared), *events[1:])
    ]


def test_the_audit_notes_the_coupling_and_a_change_of_company():
    (key,) = found(sharing(planted_effect()))
    assert key == ("coupled", "notes", ())
    events = three_groups()
    gone = fold(events).groups[-1]
    left = found(sharing(events, lambda record: record.run.group_id != gone or record.run.replicate < 2))
    assert "in 2; " in left["company", "notes", ()]
