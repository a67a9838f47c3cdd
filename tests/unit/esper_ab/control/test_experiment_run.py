"""The last lines of an error say how to continue."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from support.journals.synthetic import started
from support.plans import fake_plans

from esper_ab.contracts.errors import Interrupted, WorkerFailed
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.control.experiment_run import append_resume_command
from esper_ab.journal.fold import begin

CODE = RewardCode(reference="mine.py:reward", folder="rewards/1", file="mine.py", sha256="0" * 64)
RESUME = "to go on: esper-ab resume experiments/late"


def advice_after(error, **spec_changes):
    plan = fake_plans.plan()
    runs = tuple(replace(spec, **spec_changes) for spec in plan.blocks[0].runs)
    plan = replace(plan, blocks=(replace(plan.blocks[0], runs=runs),))
    append_resume_command(error, Path("experiments/late"), begin(started(plan)))
    return str(error).splitlines()


@pytest.mark.parametrize("is_installed", [False, True])
def test_an_error_of_a_user_reward_mentions_the_copy_of_the_code(is_installed):
    code = replace(CODE, folder="", file="") if is_installed else CODE
    lines = advice_after(WorkerFailed("reward 'mine.py:reward' failed"), reward_code=(code,))
    assert lines[-1] == RESUME, "the last line can be pasted"
    assert [line for line in lines if "a copy of your code" in line] == ([] if is_installed else lines[1:2])
    assert len(lines) == (2 if is_installed else 3)


def test_errors_without_user_code_do_not_mention_a_copy():
    assert advice_after(WorkerFailed("out of memory")) == ["out of memory", RESUME]
    assert advice_after(Interrupted("stopped", in_order=True), reward_code=(CODE,))[1:] == [RESUME]
