"""Plans made by the real planner for a fictitious machine with as many cores as a test wants."""

from msgspec.structs import replace

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.trainer import TrainerOrder
from esper_ab.plan.blocks import make_plan
from esper_ab.plan.plan import Plan
from esper_ab.settings.experiment import Group, ResolvedExperiment
from support.plans import requests
from workers.kinds.growth.measures import MEASURES

# The outcome has no bounds, because fake workers plant effects of ten points by the letter of a group.
OPEN = replace(MEASURES, outcome=replace(MEASURES.outcome, low=None, high=None))
DIGITS = replace(
    requests.TASK, slots=("early",), sizes=(8, 2, 2), host_params=100, host_multiply_adds=100, measures=OPEN
)


def machine(cores: int) -> Machine:
    facts = {"rewards": ("shaped",), "controllers": ("ppo",), "blueprints": ("norm",), "tasks": (DIGITS,)}
    return requests.machine(cores, torch_version="none", **facts)


def plan(cores: int = 2, groups: tuple[str, ...] = ("a", "b"), **settings) -> Plan:
    """Return the plan of a small experiment; `settings` are fields of ResolvedExperiment."""
    small_settings = {
        "slots": ("early",),
        "n_envs": 1,
        "episodes": 2,
        "steps": 2,
        "seeds": 1,
        "eval_episodes": 1,
        "margin": 2.0,
    }
    experiment = ResolvedExperiment(
        name="fake",
        groups=tuple(Group(name=name, settings=GroupSettings()) for name in groups),
        devices=tuple(f"cpu:{i}" for i in range(cores)),
        **(small_settings | settings),
    )
    return plan_of(experiment)


def plan_of(experiment: ResolvedExperiment) -> Plan:
    """Return the plan of a resolved experiment on a machine with as many cores as it has devices."""
    return make_plan(experiment, machine(len(experiment.devices)))[0]


def with_trainer_runs(plan):
    """Return the plan with its runs made by a user's own trainer."""
    order = TrainerOrder(
        reference="python train.py {seed}",
        directory="/",
        outcome="r",
        folder="/",
        files=(),
        sha256="",
        metrics={},
        out="runs/a-0/out",
        resumes=False,
    )
    return replace(
        plan,
        blocks=tuple(
            replace(block, runs=tuple(replace(spec, trainer=order) for spec in block.runs)) for block in plan.blocks
        ),
    )
