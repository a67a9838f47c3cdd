"""Which directory an experiment gets: two launches in the same second both get one, whoever is faster."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from support import asking

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import GrowthSettings
from esper_ab.execution.experiment import PlannedExperiment, claim_directory, encode_plan, plan_on
from esper_ab.settings.eval_episodes import choose_eval_episodes

MACHINE = asking.machine()
ASKED = asking.experiment(seeds=1)


def made(machine, asked, name="x"):
    return plan_on(machine, asked, name, choose_eval_episodes(asked))


def ready(experiment_dir, generated="synthetic-1"):
    plan, cost = made(MACHINE, ASKED, experiment_dir.name)
    return PlannedExperiment(
        asked=ASKED, machine=MACHINE, plan=plan, cost=cost, experiment_dir=experiment_dir, generated=generated
    )


def test_the_first_gets_the_name_and_the_others_a_suffix(tmp_path, capsys):
    found = [claim_directory(ready(tmp_path / "runs" / "synthetic-1")) for _ in range(3)]
    assert [one.experiment_dir.name for one in found] == ["synthetic-1", "synthetic-1-2", "synthetic-1-3"]
    assert found[1].plan.experiment.name == "synthetic-1-2"
    assert found[1].plan.digest == found[0].plan.digest
    assert found[1].plan == made(MACHINE, ASKED, "synthetic-1-2")[0]  # made again, not altered
    first, second = capsys.readouterr().err.splitlines()
    assert "synthetic-1 has just been taken by another experiment; this one uses" in first
    assert second.endswith("synthetic-1-3")


def test_many_at_the_same_time_get_different_names(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: claim_directory(ready(tmp_path / "synthetic-1")), range(8)))
    assert len({one.experiment_dir for one in found}) == 8


def test_a_name_that_was_asked_for_is_never_changed(tmp_path):
    asked = ready(tmp_path, generated="")
    assert claim_directory(asked) is asked


def test_a_plan_below_a_folder_that_is_no_utf_8_has_its_json(tmp_path):
    there = tmp_path / os.fsdecode(b"\xff") / "lab"
    assert json.loads(encode_plan(ready(there)))["experiment_dir"] == str(there)


def with_gpu(step_s):
    """Of no compute capability that is known, so without bf16."""
    there = asking.machine(gpus=1)
    return replace(there, devices=tuple(replace(device, step_s=step_s) for device in there.devices))


@pytest.mark.parametrize("gpu_s", [1e-5, 1.0])
def test_growing_networks_are_trained_on_gpus_however_fast_the_cpu_is_estimated(gpu_s):
    """The estimate also has the CPU's time, for the plan's line; if GPUs were named in the request, it has none."""
    there = with_gpu(gpu_s)
    found, cost = made(there, asking.experiment())
    assert {device for lane in found.lanes for device in lane.devices} == {"cuda:0"}
    on_cpu, its_cost = made(there, asking.experiment(devices=("cpu",)))
    assert cost.on_cpu_s == its_cost.duration_s
    assert on_cpu.lanes[0].devices == ("cpu:0",)
    named, named_cost = made(there, asking.experiment(devices=("cuda",)))
    assert named == found  # nothing but the estimate tells a default from a choice
    assert (named_cost.on_cpu_s, its_cost.on_cpu_s) == (0.0, 0.0)


def test_what_gpus_refuse_and_the_cpu_does_not_is_refused_with_the_flag():
    """A plan never leaves GPUs idle of its own accord."""
    halves = tuple(asking.group(name, growth=GrowthSettings(amp="bf16")) for name in "ab")
    with pytest.raises(UsageError, match=r"choose growth\.amp=fp16 or off; to use the CPU, add --devices cpu$"):
        made(with_gpu(1e-5), asking.experiment(groups=halves))
    with pytest.raises(UsageError, match="did you mean digits"):
        made(with_gpu(1e-5), asking.experiment(task="digit"))


def test_without_gpus_nothing_is_compared():
    assert made(MACHINE, ASKED)[1].on_cpu_s == 0.0
