"""What the last lines of an error say, by what is left of the experiment."""

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


def told(error, **of_every_run):
    plan = fake_plans.plan()
    runs = tuple(replace(spec, **of_every_run) for spec in plan.blocks[0].runs)
    plan = replace(plan, blocks=(replace(plan.blocks[0], runs=runs),))
    append_resume_command(error, Path("experiments/late"), begin(started(plan)))
    return str(error).splitlines()


@pytest.mark.parametrize("installed", [False, True])
def test_who_mends_a_reward_is_told_that_a_copy_is_used(installed):
    code = replace(CODE, folder="", file="") if installed else CODE
    said = told(WorkerFailed("reward 'mine.py:reward' failed"), reward_code=(code,))
    assert said[-1] == RESUME, "whoever reads the last line can paste it"
    assert [line for line in said if "a copy of your code" in line] == ([] if installed else said[1:2])
    assert len(said) == (2 if installed else 3)


def test_nobody_else_is_told_of_copies():
    assert told(WorkerFailed("out of memory")) == ["out of memory", RESUME]
    assert told(Interrupted("stopped", in_order=True), reward_code=(CODE,))[1:] == [RESUME]
