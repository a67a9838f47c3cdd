"""On which devices a part is planned, and what the estimate has of the others."""

import pytest
from msgspec.structs import replace
from support.plans import requests

from esper_ab.campaign.campaign import PriorResults
from esper_ab.campaign.part_planning import plan_on
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import GrowthSettings

MACHINE = requests.machine()
ASKED = requests.experiment(seeds=1)


def made(machine, asked):
    return plan_on(machine, asked, "x", PriorResults())


def with_gpu(step_s):
    """Return a machine with one GPU of unknown compute capability, so without bf16."""
    there = requests.machine(gpus=1)
    return replace(there, devices=tuple(replace(device, step_s=step_s) for device in there.devices))


@pytest.mark.parametrize("gpu_s", [1e-5, 1.0])
def test_growing_networks_are_trained_on_gpus_however_fast_the_cpu_is_estimated(gpu_s):
    """The estimate also has the CPU's time, for the plan's line; if GPUs were named in the request, it has none."""
    there = with_gpu(gpu_s)
    found, cost = made(there, requests.experiment())
    assert {device for lane in found.lanes for device in lane.devices} == {"cuda:0"}
    on_cpu, its_cost = made(there, requests.experiment(devices=("cpu",)))
    assert cost.on_cpu_s == its_cost.duration_s
    assert on_cpu.lanes[0].devices == ("cpu:0",)
    named, named_cost = made(there, requests.experiment(devices=("cuda",)))
    assert named == found  # nothing but the estimate tells a default from a choice
    assert (named_cost.on_cpu_s, its_cost.on_cpu_s) == (0.0, 0.0)


def test_what_gpus_refuse_and_the_cpu_does_not_is_refused_with_the_flag():
    """A plan never leaves GPUs idle of its own accord."""
    halves = tuple(requests.group(name, growth=GrowthSettings(amp="bf16")) for name in "ab")
    with pytest.raises(UsageError, match=r"choose growth\.amp=fp16 or off; to use the CPU, add --devices cpu$"):
        made(with_gpu(1e-5), requests.experiment(groups=halves))
    with pytest.raises(UsageError, match="did you mean digits"):
        made(with_gpu(1e-5), requests.experiment(task="digit"))


def test_without_gpus_nothing_is_compared():
    assert made(MACHINE, ASKED)[1].on_cpu_s == 0.0
