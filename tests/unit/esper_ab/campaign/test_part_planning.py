"""Devices on which a part is planned, and the estimated time on others."""

import pytest
from msgspec.structs import replace
from support.plans import requests

from esper_ab.campaign.campaign import PriorResults
from esper_ab.campaign.part_planning import plan_on
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import GrowthSettings

MACHINE = requests.machine()
ASKED = requests.experiment(seeds=1)


def plan_on_machine(machine, asked_experiment):
    return plan_on(machine, asked_experiment, "x", PriorResults())


def with_gpu(step_s):
    """Return a machine with one GPU of unknown compute capability, so without bf16."""
    gpu_machine = requests.machine(gpus=1)
    return replace(gpu_machine, devices=tuple(replace(device, step_s=step_s) for device in gpu_machine.devices))


@pytest.mark.parametrize("gpu_s", [1e-5, 1.0])
def test_growth_runs_use_gpus_even_if_the_cpu_is_faster(gpu_s):
    """The estimate has the CPU's time for the plan's line, unless GPUs were requested."""
    this_machine = with_gpu(gpu_s)
    by_default, cost = plan_on_machine(this_machine, requests.experiment())
    assert {device for lane in by_default.lanes for device in lane.devices} == {"cuda:0"}
    cpu_plan, cpu_cost = plan_on_machine(this_machine, requests.experiment(devices=("cpu",)))
    assert cost.on_cpu_s == cpu_cost.duration_s
    assert cpu_plan.lanes[0].devices == ("cpu:0",)
    named_plan, named_cost = plan_on_machine(this_machine, requests.experiment(devices=("cuda",)))
    assert named_plan == by_default  # only the estimate differs
    assert (named_cost.on_cpu_s, cpu_cost.on_cpu_s) == (0.0, 0.0)


def test_the_refusal_of_a_setting_unsupported_by_gpus_suggests_the_cpu():
    """A plan never leaves GPUs idle without a request."""
    halves = tuple(requests.group(name, growth=GrowthSettings(amp="bf16")) for name in "ab")
    with pytest.raises(UsageError, match=r"choose growth\.amp=fp16 or off; to use the CPU, add --devices cpu$"):
        plan_on_machine(with_gpu(1e-5), requests.experiment(groups=halves))
    with pytest.raises(UsageError, match="did you mean digits"):
        plan_on_machine(with_gpu(1e-5), requests.experiment(task="digit"))


def test_the_estimate_has_no_separate_time_for_the_cpu_without_gpus():
    assert plan_on_machine(MACHINE, ASKED)[1].on_cpu_s == 0.0
