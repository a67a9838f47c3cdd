"""experiment.toml is read back as the same experiment, and plan.txt describes it."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plans import requests

from esper_ab.commands._options import gather_lists
from esper_ab.contracts import catalog
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Kernel
from esper_ab.plan.estimate import estimate
from esper_ab.plan.plan import Plan
from esper_ab.plan.settings_toml import experiment_toml, run_toml
from esper_ab.plan.text import plan_text
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kernel import resolve_kernel
from esper_ab.settings.parse import parse
from esper_ab.settings.request import request
from esper_ab.settings.settings_file import read_toml

asdict = msgspec.structs.asdict
NOT_IN_PLANS = {"total_timesteps": 0}  # a plan has episodes instead
MACHINE = requests.machine(
    controllers=catalog.names("workers.kinds.growth.controllers"),
    native_blueprints=catalog.names("workers.kinds.growth.blueprints"),
    kernels=(Kernel(name="native-avx2", build="g++ 12; -O3; sources abc"),),
)


def planned(*groups: str, **request_changes: object) -> Plan:
    return requests.planned(requests.asked(*groups, **request_changes), MACHINE)  # type: ignore[arg-type]


def write_and_read(plan: Plan, folder: Path) -> AskedExperiment:
    path = folder / "experiment.toml"
    path.write_text(experiment_toml(plan, MACHINE), encoding="utf-8")
    return parse(request(read_toml(path)))


def resolved_fields(asked_experiment: AskedExperiment) -> dict[str, Any]:
    """Return the fields of an experiment with the arithmetic resolved on this machine."""
    return asdict(asked_experiment) | {"arithmetic": resolve_kernel(asked_experiment.arithmetic, MACHINE)}


@settings(max_examples=25)
@given(
    st.lists(st.from_regex(r"g[A-Za-z0-9_.=+-]{0,20}", fullmatch=True), min_size=2, max_size=4, unique=True),
    st.floats(1e-9, 1e3),
    st.integers(0, 2**63 - 1),
)
def test_a_written_experiment_toml_is_read_back_as_the_same_experiment(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], lr: float, rng_seed: int
) -> None:
    group = (*(f"{name}:reward=sparse" for name in names), f"{names[0]}:ppo.lr={lr!r}")
    plan = planned(group=group, rng_seed=rng_seed)
    assert resolved_fields(write_and_read(plan, tmp_path_factory.mktemp("run"))) == NOT_IN_PLANS | asdict(
        plan.experiment
    )


def test_edited_settings_that_contradict_the_recorded_digest_are_refused(tmp_path: Path) -> None:
    plan = planned("shaped", "wait", episodes=12)
    path = tmp_path / "experiment.toml"
    spec = plan.blocks[0].runs[0]
    for text in (experiment_toml(plan, MACHINE), run_toml(plan, spec)):
        path.write_text(text.replace("episodes = 12", "episodes = 13"), encoding="utf-8")
        with pytest.raises(UsageError, match=r"experiment.toml: the settings .* \[record\]"):
            read_toml(path)
        path.write_text(path.read_text(encoding="utf-8").partition("\n[record]")[0], encoding="utf-8")
        assert parse(request(read_toml(path), groups=("shaped", "wait"))).episodes == 13


def test_experiment_toml_records_versions_and_devices(tmp_path: Path) -> None:
    plan = planned("shaped", group=("p:controller=schedule,controller.schedule=[\"1:germinate:early:style='x'\"]",))
    assert resolved_fields(write_and_read(plan, tmp_path)) == NOT_IN_PLANS | asdict(plan.experiment)
    record = tomllib.loads(experiment_toml(plan, MACHINE))["record"]
    assert record["digest"] == plan.digest
    assert record["versions"]["torch"] == "2.13"
    assert record["kernel_build"] == plan.experiment.arithmetic.kernel_build == "g++ 12; -O3; sources abc"
    assert set(record["devices"]) == {"cpu:0", "cpu:1"}


def test_the_plan_text_fits_the_width_of_the_terminal() -> None:
    plan = planned("shaped", "wait", seeds=20, sets=("ppo.lr=0.5",))
    cost = estimate(plan.experiment, plan.lanes, MACHINE)
    text = plan_text(plan, MACHINE, cost, Path("runs/x"))
    for words in (
        "2 groups x 20 seeds = 40 runs",
        "controller.name  ppo     wait",
        "0: shaped on cpu:0, wait on cpu:1",
        "… and 8 more",
        "devices: 2 at a time on 2 CPU cores",
        "environments per device: cpu:0: 4 environments, cpu:1: 4",
        "estimate: about",
        "estimates: Mean difference",
        "note: No GPU",
    ):
        assert words in text
    for width in (48, 60, 100):
        narrow = plan_text(plan, MACHINE, cost, Path("runs/x"), width)
        assert max(map(len, narrow.splitlines())) <= width
        assert narrow.split() == text.split()


@pytest.mark.parametrize(
    ("args", "gathered_arguments"),
    [
        ("--slots early mid --json", "--slots early,mid --json"),
        ("--slots early,mid", "--slots early,mid"),
        ("--devices cpu:0, cpu:1 --slots a", "--devices cpu:0,cpu:1 --slots a"),
        ("--groups a,b", "--groups a,b"),
    ],
)
def test_lists_may_be_separated_by_spaces_or_commas(args: str, gathered_arguments: str) -> None:
    assert gather_lists(args.split()) == gathered_arguments.split()
