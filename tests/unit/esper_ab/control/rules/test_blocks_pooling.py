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
from support.journals import planted_effect, three_groups

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.records import Moments
from esper_ab.contracts.settings import ControllerSettings, GroupSettings, GrowthSettings, PolicySettings
from esper_ab.control.rules.blocks import check_width, pooled, to_release
from esper_ab.control.rules.runs import event_of
from esper_ab.control.rules.validation import OBSERVED_AT_MOST, Rejected, milestone_of
from esper_ab.design.calibration_file import circumstances_of
from esper_ab.journal.events import SCHEMA, EpisodeRecorded, ExperimentStarted, MilestoneReleased
from esper_ab.journal.fold import begin, fold
from esper_ab.plan.notes import notes
from esper_ab.settings.experiment import AskedExperiment, Group
from esper_ab.settings.resolve import resolve

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
    """Rows of some learners, three columns, none of them empty as a whole."""
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


def test_learners_that_have_seen_nothing_add_nothing():
    nothing, some = of(np.empty((0, 2))), of(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert pooled([nothing, some, nothing]) == some
    assert pooled([nothing, nothing]) == nothing


def test_different_widths_are_not_merged():
    with pytest.raises(ValueError, match="zip"):
        pooled([of(np.ones((2, 2))), of(np.ones((2, 3)))])


# --- what a release carries ---


def history_at(milestone, plan=PLAN):
    """Both runs have recorded everything up to `milestone`."""
    history = begin(ExperimentStarted(schema=SCHEMA, plan=plan, versions={}, machine={}, code={}))
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


def test_a_journal_without_sharing_has_the_lines_it_had():
    """A field that is not used leaves no trace."""
    spec = fake_plans.plan().blocks[0].runs[0]
    for event in (event_of(report_of(spec, 1)), MilestoneReleased(replicate=0, milestone=1, runs=("a/0",))):
        assert b"observations" not in msgspec.json.encode(event)
    shared = event_of(report_of(A, 1))
    assert isinstance(shared, EpisodeRecorded)
    assert shared.observations == moments(A, 1)


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


# --- who may ask for it, and what is said of it ---


def asked(*groups, **settings):
    there = fake_plans.machine(4)
    plain = fake_plans.plan(cores=4).experiment
    learners = tuple(Group(name=name, settings=of_group) for name, of_group in groups)
    want = {**msgspec.structs.asdict(plain), "groups": learners, "share_observation_norm": True, **settings}
    there = replace(there, controllers=("wait", "random"), blueprints=("norm", "attention"))
    return resolve(AskedExperiment(**want), there, plain.name, 16)


def group(name, controller="ppo", blueprints=("norm",), normalises=True):
    ppo, policy = GroupSettings().ppo, PolicySettings(normalise_observations=normalises)
    return name, GroupSettings(
        controller=ControllerSettings(name=controller), growth=GrowthSettings(blueprints=blueprints),
        ppo=replace(ppo, minibatches=1), policy=policy,
    )


@pytest.mark.parametrize(("groups", "settings", "why"), [
    ((group("a"), group("b")), {"sync": "independent"}, "barrier after every episode; --sync independent has none"),
    ((group("a"), group("b")), {"placement": "sequence"}, "--placement sequence has none: choose one"),
    ((group("a"), group("b")), {"unpaired": True}, "--unpaired is to keep them apart"),
    ((group("a"), group("w", "wait")), {}, "only 'a' learns"),
    ((group("w", "wait"), group("r", "random")), {}, "no group learns"),
    ((group("a"), group("b", normalises=False)), {}, "'b' does not normalise its observations"),
    ((group("a"), group("b", blueprints=("attention",))), {}, "'a' and 'b' have different growth.blueprints"),
])  # fmt: skip
def test_what_cannot_share_is_refused_in_one_line(groups, settings, why):
    with pytest.raises(UsageError, match=why) as caught:
        asked(*groups, **settings)
    assert str(caught.value).startswith("--share-observation-norm")
    assert "\n" not in str(caught.value)


def test_learners_share_and_controllers_are_no_part_of_it():
    experiment = asked(group("a"), group("b"), group("w", "wait", ("attention",)))
    plan = fake_plans.plan(groups=("a", "b"), share_observation_norm=True)
    assert [spec.share_observation_norm for spec in plan.blocks[0].runs] == [True, True]
    fixed = fake_plans.plan_of(experiment)
    sharing = {spec.ref.group_id: spec.share_observation_norm for spec in fixed.blocks[0].runs}
    assert sharing == {"a": True, "b": True, "w": False}
    assert not any(spec.share_observation_norm for spec in fake_plans.plan().blocks[0].runs)


def test_the_plan_says_that_groups_are_coupled_and_that_an_early_end_changes_the_company():
    def said(*names, **settings):
        experiment = fake_plans.plan(cores=4, groups=names, **settings).experiment
        written = notes(experiment, fake_plans.machine(4), (), (), positions_matter=False)
        return [note for note in written if "share" in note]

    assert said("a", "b") == []
    (coupled,) = said("a", "b", share_observation_norm=True)
    assert "a, b normalise their observations by the moments of all of them, so they are coupled" in coupled
    coupled, company = said("a", "b", "c", share_observation_norm=True)
    assert "--no-early-stop keeps the company the same" in company
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


def test_no_calibration_fits_runs_that_share():
    plain = fake_plans.plan().experiment
    assert "share_observation_norm" not in circumstances_of(plain)
    assert circumstances_of(replace(plain, share_observation_norm=True)) != circumstances_of(plain)
