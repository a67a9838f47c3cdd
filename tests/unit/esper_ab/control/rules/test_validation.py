"""The coordinator's checks of reports."""

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


def with_record(report, **fields):
    return replace(report, record=replace(report.record, **fields))


def with_env(report, **fields):
    first_env, *later_envs = report.record.envs
    return with_record(report, envs=(replace(first_env, **fields), *later_envs))


def with_checkpoint(file, milestone=2):
    checkpoint = Checkpoint(milestone=milestone, file=file, sha256="0" * 64, size_bytes=1)
    return replace(report_of(SPEC, 2), checkpoint=checkpoint)


@pytest.mark.parametrize("file", [file_of(SPEC.ref, 2), file_of(SPEC.ref, 2, writer=3)])
def test_a_checkpoint_outside_the_path_of_its_run_and_milestone_is_rejected(file):
    assert milestone_of(with_checkpoint(file), SPEC, fake_plans.OPEN) == 2
    folder = file.rpartition("/")[0]
    wrong_files = (
        file_of(OTHER.ref, 2),
        file_of(SPEC.ref, 1),
        f"{folder}/deep/2.pt",
        f"{folder}/2.txt",
        f"{folder}/2.x.pt",
    )
    for wrong_file in wrong_files:
        with pytest.raises(Rejected, match="sent a checkpoint after episode 1 as "):
            milestone_of(with_checkpoint(wrong_file), SPEC, fake_plans.OPEN)
    with pytest.raises(Rejected, match="sent a checkpoint after episode 0 as "):
        milestone_of(with_checkpoint(file, milestone=1), SPEC, fake_plans.OPEN)


@pytest.mark.parametrize("milestone", range(4))
def test_a_valid_report_has_its_milestone(milestone):
    assert milestone_of(report_of(SPEC, milestone), SPEC, fake_plans.OPEN) == milestone


def evaluation_report(*episodes):
    return with_record(report_of(SPEC, 3), episodes=episodes)


NOT_EACH_ONCE = "did not evaluate each of the 2 planned"
UNPLANNED_EPISODE = replace(EPISODES[0], actions="greedy", episode=9)
WITHOUT_OUTCOME = replace(EPISODES[0].result, outcome=None)


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (report_of(OTHER, 1), "but was assigned"),
        (with_record(report_of(SPEC, 1), run=OTHER.ref), "sent a record of"),
        (with_record(report_of(SPEC, 1), episode=2), "sent episode 2 of 2"),
        (with_record(report_of(SPEC, 1), episode=-1), "sent episode -1 of 2"),
        (with_record(report_of(SPEC, 1), envs=()), r"environments \[\] instead of 0 to 1, each exactly once"),
        (with_record(report_of(SPEC, 1), envs=(*report_of(SPEC, 1).record.envs,) * 2), "0 to 1, each exactly once"),
        (evaluation_report(*EPISODES[:-1]), NOT_EACH_ONCE),
        (evaluation_report(*EPISODES, EPISODES[0]), NOT_EACH_ONCE),
        (evaluation_report(*EPISODES, UNPLANNED_EPISODE), NOT_EACH_ONCE),
        (
            evaluation_report(replace(EPISODES[0], result=WITHOUT_OUTCOME), *EPISODES[1:]),
            "evaluated environment 0 without an outcome",
        ),
        (with_env(report_of(SPEC, 1), measures={"speed": 1.0}), "measured speed instead of val_accuracy, "),
    ],
)
def test_an_invalid_report_is_rejected(report, reason):
    with pytest.raises(Rejected, match=reason):
        milestone_of(report, SPEC, fake_plans.OPEN)


def test_an_outcome_outside_its_range_is_rejected():
    for valid_outcome in (99.0, None):
        assert milestone_of(with_env(report_of(SPEC, 1), outcome=valid_outcome), SPEC, MEASURES) == 1
    with pytest.raises(Rejected, match=r"sent held-out accuracy 300, outside the range 0\.0 to 100\.0"):
        milestone_of(with_env(report_of(SPEC, 1), outcome=300.0), SPEC, MEASURES)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"protocol": PROTOCOL + 1}, "speaks protocol"),
        ({"incarnation": 1}, "calls itself w00/1"),
        ({"uuids": ("GPU-2",)}, "has devices"),
    ],
)
def test_a_hello_that_contradicts_the_order_is_rejected(change, reason):
    check_hello(HELLO, ORDER)
    with pytest.raises(Rejected, match=reason):
        check_hello(replace(HELLO, **change), ORDER)


def spoilt_copies(value, number):
    """Yield every copy of `value` with one float replaced by `number`."""
    if isinstance(value, float):
        yield number
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            for changed_child in spoilt_copies(child, number):
                copy = value.copy()
                copy[key] = changed_child
                yield copy


def test_decoding_refuses_non_finite_and_huge_numbers_in_every_field():
    """JSON cannot hold the former, and records have a range."""
    for record in (EPISODE, EVALUATION):
        plain_record = msgspec.msgpack.decode(msgspec.msgpack.encode(record))
        copies = [copy for number in (math.nan, -math.inf, 1e101) for copy in spoilt_copies(plain_record, number)]
        assert len(copies) > 75
        for copy in copies:
            with pytest.raises(msgspec.ValidationError, match=r"Expected `float` [<>]= "):
                msgspec.convert(copy, type=type(record))
