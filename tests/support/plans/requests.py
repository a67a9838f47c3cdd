"""Settings as a user gives them, a fictitious machine, and the resulting plan."""

from pathlib import Path

import msgspec

from esper_ab.contracts.machine import Device, Machine, TaskFacts
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import GroupSettings, PPOSettings
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.plan.blocks import make_plan
from esper_ab.plan.plan import Plan
from esper_ab.settings.eval_episodes import choose_eval_episodes
from esper_ab.settings.experiment import AskedExperiment, Group
from esper_ab.settings.parse import parse
from esper_ab.settings.request import request
from esper_ab.settings.resolve import resolve
from esper_ab.settings.settings_file import FileSettings, read_toml
from workers.kinds.growth.measures import MEASURES

TASK = TaskFacts(
    name="digits",
    title="digits",
    slots=("early", "mid", "late"),
    sizes=(1024, 384, 389),
    sample_values=64,
    host_params=1090,
    host_multiply_adds=4928,
    classes=10,
    measures=MEASURES,
)


def machine(cores: int = 2, gpus: int = 0, **changes: object) -> Machine:
    devices = [
        Device(name=f"cuda:{i}", title="H200", uuid=f"GPU-{i}", memory_bytes=1 << 37, step_s=0.01) for i in range(gpus)
    ]
    devices += [Device(name=f"cpu:{i}", title="", uuid="", memory_bytes=1 << 33) for i in range(cores)]
    default_machine = Machine(
        torch_version="2.13",
        cuda_build="13.0" if gpus else "",
        devices=tuple(devices),
        rewards=("minimal", "shaped", "simplified", "sparse"),
        controllers=("random", "wait"),
        blueprints=("attention", "bottleneck", "conv_heavy", "conv_light", "conv_small", "depthwise", "norm"),
        tasks=(TASK,),
        multiply_adds_per_s=1e9,
        user_rewards=(),
        task_problem="",
        gpu_problem="",
    )
    return msgspec.structs.replace(default_machine, **changes)


def group(name: str, **settings: object) -> Group:
    return Group(name=name, settings=GroupSettings(**settings))  # type: ignore[arg-type]


def experiment(names: tuple[str, ...] = ("a", "b"), **changes: object) -> AskedExperiment:
    groups = tuple(group(name, ppo=PPOSettings(lr=0.001 * (1 + sum(name.encode()) % 7))) for name in names)
    request_of_user = AskedExperiment(groups=groups)
    return msgspec.structs.replace(request_of_user, **changes)


FACTS = TrainerFacts(
    settings={"slow": {"lr": 0.1}, "fast": {"lr": 0.2}},
    files=("mine.py",),
    sha256="a" * 64,
    metrics={"Loss": "loss"},
    evaluations=4,
    repeats=True,
    resumption="exactly",
    point_s=2.0,
    evaluate_s=1.0,
)


def rehearsed(**facts: object) -> Machine:
    """Return a machine that has rehearsed a trainer with these facts; its outcome is an error in J."""
    outcome = Measure(name="outcome", label="error", unit="J", better="lower")
    measures = TaskMeasures(outcome=outcome, measures=(Measure(name="loss", label="Loss"),))
    tasks = (
        TaskFacts(name=f"trainer:{name}", title="", kind="trainer", measures=measures)
        for name in ("mine", "run", "python")
    )
    return machine(tasks=tuple(tasks), trainer=msgspec.structs.replace(FACTS, **facts))


def planned(asked_experiment: AskedExperiment, facts: Machine) -> Plan:
    return make_plan(
        resolve(asked_experiment, facts, "x", choose_eval_episodes(asked_experiment).eval_episodes), facts
    )[0]


def asked(
    *groups: str,
    group: tuple[str, ...] = (),
    sets: tuple[str, ...] = (),
    toml: FileSettings | None = None,
    **flags: object,
) -> AskedExperiment:
    return parse(request(toml or FileSettings(), groups=groups, group=group, assignments=sets, flags=flags))


def toml(tmp_path: Path, text: str) -> FileSettings:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return read_toml(path)


def by_name(experiment: AskedExperiment) -> dict[str, GroupSettings]:
    return {group.name: group.settings for group in experiment.groups}
