"""What the coordinator believes of a report."""

import math

import msgspec
import pytest
from msgspec.structs import replace
from support.journals.ready_journals import a_record_of_each_kind
from support.plans import fake_plans
from support.plans.worker_orders import order
from support.workers.fake_worker import report_of

from esper_ab.contracts.checkpoint_files import file_of
from esper_ab.contracts.messages import PROTOCOL, Hello
from esper_ab.contracts.records import Checkpoint
from esper_ab.control.rules.validation import Rejected, check_hello, milestone_of
from workers.kinds.growth.measures import MEASURES

SPEC, OTHER = fake_plans.plan(n_envs=2, eval_episodes=2).blocks[0].runs
ORDER = order("cuda:0", "GPU-1", incarnation=2)
HELLO = Hello(worker="w00", incarnation=2, protocol=PROTOCOL, pid=1, uuids=("GPU-1",), torch_version="", sources="")


EPISODES = tuple(played for played in report_of(SPEC, 3).record.episodes if played.actions == "sampled")
EPISODE, EVALUATION = a_record_of_each_kind()


def changed(report, **fields):
    return replace(report, record=replace(report.record, **fields))


def with_env(report, **fields):
    first, *others = report.record.envs
    return changed(report, envs=(replace(first, **fields), *others))


def with_checkpoint(file, milestone=2):
    checkpoint = Checkpoint(milestone=milestone, file=file, sha256="0" * 64, size_bytes=1)
    return replace(report_of(SPEC, 2), checkpoint=checkpoint)


@pytest.mark.parametrize("file", [file_of(SPEC.ref, 2), file_of(SPEC.ref, 2, writer=3)])
def test_a_checkpoint_lies_where_its_run_keeps_its_milestone(file):
    assert milestone_of(with_checkpoint(file), SPEC, fake_plans.OPEN) == 2
    folder = file.rpartition("/")[0]
    wrong = (file_of(OTHER.ref, 2), file_of(SPEC.ref, 1), f"{folder}/deep/2.pt", f"{folder}/2.txt", f"{folder}/2.x.pt")
    for other in wrong:
        with pytest.raises(Rejected, match="sent a checkpoint after episode 1 as "):
            milestone_of(with_checkpoint(other), SPEC, fake_plans.OPEN)
    with pytest.raises(Rejected, match="sent a checkpoint after episode 0 as "):
        milestone_of(with_checkpoint(file, milestone=1), SPEC, fake_plans.OPEN)


@pytest.mark.parametrize("milestone", range(4))
def test_a_right_report_arrives_at_its_point(milestone):
    assert milestone_of(report_of(SPEC, milestone), SPEC, fake_plans.OPEN) == milestone


def evaluated(*episodes):
    return changed(report_of(SPEC, 3), episodes=episodes)


NOT_EACH = "did not evaluate each of the 2 planned"
ELSE = replace(EPISODES[0], actions="greedy", episode=9)
WITHOUT = replace(EPISODES[0].result, outcome=None)


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (report_of(OTHER, 1), "but was assigned"),
        (changed(report_of(SPEC, 1), run=OTHER.ref), "sent a record of"),
        (changed(report_of(SPEC, 1), episode=2), "sent episode 2 of 2"),
        (changed(report_of(SPEC, 1), episode=-1), "sent episode -1 of 2"),
        (changed(report_of(SPEC, 1), envs=()), r"environments \[\] instead of 0 to 1, each exactly once"),
        (changed(report_of(SPEC, 1), envs=(*report_of(SPEC, 1).record.envs,) * 2), "0 to 1, each exactly once"),
        (evaluated(*EPISODES[:-1]), NOT_EACH),
        (evaluated(*EPISODES, EPISODES[0]), NOT_EACH),
        (evaluated(*EPISODES, ELSE), NOT_EACH),
        (evaluated(replace(EPISODES[0], result=WITHOUT), *EPISODES[1:]), "evaluated environment 0 without an outcome"),
        (with_env(report_of(SPEC, 1), measures={"speed": 1.0}), "measured speed instead of val_accuracy, "),
    ],
)
def test_a_report_that_cannot_be_right_is_rejected(report, why):
    with pytest.raises(Rejected, match=why):
        milestone_of(report, SPEC, fake_plans.OPEN)


def test_an_outcome_is_within_its_range_and_may_be_missing_in_a_rollout():
    for right in (99.0, None):
        assert milestone_of(with_env(report_of(SPEC, 1), outcome=right), SPEC, MEASURES) == 1
    with pytest.raises(Rejected, match=r"sent held-out accuracy 300, outside the range 0\.0 to 100\.0"):
        milestone_of(with_env(report_of(SPEC, 1), outcome=300.0), SPEC, MEASURES)


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
        check_hello(replace(HELLO, **change), ORDER)


def spoilt(value, number):
    """Every copy of `value` in which one float is `number`."""
    if isinstance(value, float):
        yield number
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            for changed in spoilt(child, number):
                copy = value.copy()
                copy[key] = changed
                yield copy


def test_no_number_escapes():
    """Decoding refuses every number that JSON cannot hold or that is beyond the range of a record."""
    for record in (EPISODE, EVALUATION):
        plain = msgspec.msgpack.decode(msgspec.msgpack.encode(record))
        copies = [copy for number in (math.nan, -math.inf, 1e101) for copy in spoilt(plain, number)]
        assert len(copies) > 75
        for copy in copies:
            with pytest.raises(msgspec.ValidationError, match=r"Expected `float` [<>]= "):
                msgspec.convert(copy, type=type(record))
