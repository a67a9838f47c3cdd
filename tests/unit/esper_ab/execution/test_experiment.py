"""Generated names of experiment directories: two launches in the same second both get one, whoever is faster."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from support import asking, fake_plans

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import GroupSettings, GrowthSettings
from esper_ab.execution.experiment import PlannedExperiment, claim_directory, encode_plan, plan_on
from esper_ab.settings.eval_episodes import choose_eval_episodes
from esper_ab.settings.experiment import AskedExperiment, Group

MACHINE = fake_plans.machine(2)
SETTINGS = GroupSettings(growth=GrowthSettings(blueprints=("norm",)))
ASKED = AskedExperiment(groups=tuple(Group(name=name, settings=SETTINGS) for name in "ab"), seeds=1)


def made(machine, asked, name="x"):
    return plan_on(machine, asked, name, choose_eval_episodes(asked))


def ready(experiment_dir, generated="synthetic-1"):
    plan, cost = made(MACHINE, ASKED, experiment_dir.name)
    return PlannedExperiment(
        asked=ASKED, machine=MACHINE, plan=plan, cost=cost, experiment_dir=experiment_dir, generated=generated
    )


def make(experiment_dir):
    experiment_dir.mkdir(parents=True)


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
    make(tmp_path / "mine")
    asked = ready(tmp_path / "mine", generated="")
    assert claim_directory(asked) is asked


def test_a_plan_below_a_folder_that_is_no_utf_8_has_its_json(tmp_path):
    there = tmp_path / os.fsdecode(b"\xff") / "lab"
    assert json.loads(encode_plan(ready(there)))["experiment_dir"] == str(there)


@pytest.mark.parametrize(("gpu_s", "sooner"), [(1e-5, "cuda"), (1.0, "cpu")])
def test_without_devices_growing_networks_are_trained_where_it_is_estimated_to_end_sooner(gpu_s, sooner):
    there = asking.machine(gpus=1)
    there = replace(there, devices=tuple(replace(device, step_s=gpu_s) for device in there.devices))
    found = made(there, asking.experiment())[0]
    assert {device.partition(":")[0] for lane in found.lanes for device in lane.devices} == {sooner}
    assert found.notes[-1].startswith(f"Trained on {sooner}, by an estimate of both: ")
    for kind in ("cpu", "cuda"):  # asked for, it is had, and nothing is said of the other
        forced = made(there, asking.experiment(devices=(kind,)))[0]
        assert forced.lanes[0].devices[0].startswith(kind)
        assert not any("by an estimate of both" in note for note in forced.notes)
    assert made(there, asking.experiment(devices=(sooner,)))[0].digest == found.digest


def test_what_one_kind_of_device_refuses_is_planned_on_the_other():
    there = asking.machine(gpus=1)  # of no compute capability that is known, so without bf16
    there = replace(there, devices=tuple(replace(device, step_s=1e-5) for device in there.devices))
    halves = tuple(asking.group(name, growth=GrowthSettings(amp="bf16")) for name in "ab")
    found = made(there, asking.experiment(groups=halves))[0]
    assert found.lanes[0].devices == ("cpu:0",)
    assert "refused on cuda" in found.notes[-1]
    with pytest.raises(UsageError, match="did you mean digits"):
        made(there, asking.experiment(task="digit"))
