"""Whose deaths a world of faults is about: workers without torch or with it, their plan, their coordinator."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from esper_ab.contracts.settings import GroupSettings, GrowthSettings, PolicySettings, PPOSettings, RewardSettings
from esper_ab.execution.experiment import plan_on
from esper_ab.plan.plan import Plan
from esper_ab.settings.experiment import AskedExperiment, Group
from esper_ab.settings.kinds import kind_of
from support import children, fake_plans


@dataclass(frozen=True, kw_only=True)
class Crew:
    """`plan`: of every world; `entry`: of its workers, with deaths planted."""

    plan: Plan
    entry: str
    start_up_s: float  # on a machine that is not crowded: as many times longer, else


def fake(replicates: int, episodes: int) -> Crew:
    """Torch-free workers with real checkpoints."""
    plan = fake_plans.plan(seeds=replicates, episodes=episodes)
    return Crew(plan=plan, entry="support.planted_death:worker", start_up_s=15.0)


def real(replicates: int, episodes: int) -> Crew:
    """Real workers on two lanes of this machine, with the smallest policy and hosts that still learn something."""
    from workers.commands.describe import describe  # with torch

    asked = AskedExperiment(
        name="small", groups=(_group("a", "shaped"), _group("b", "simplified")), devices=("cpu:0", "cpu:1"),
        seeds=replicates, episodes=episodes, steps=3, n_envs=2, eval_episodes=2,
    )  # fmt: skip
    plan = plan_on(describe(kind_of(asked.task).ask(asked)), asked, asked.name)
    return Crew(plan=plan, entry="support.planted_death:real_worker", start_up_s=120.0)


def _group(name: str, mode: str) -> Group:
    return Group(name=name, settings=GroupSettings(
        reward=RewardSettings(mode=mode), policy=PolicySettings(hidden=16), ppo=PPOSettings(epochs=1),
        growth=GrowthSettings(blueprints=("norm", "conv_light")),
    ))  # fmt: skip


def coordinator(
    crew: Crew, experiment_dir: Path, life: int, floor_s: float, surroundings: tuple[dict[str, str], BinaryIO]
) -> subprocess.Popen[bytes]:
    """One more life: it begins the experiment or takes it up. `surroundings`: its environment and standard error."""
    environment, errors = surroundings
    plan = experiment_dir.parent / "plan.json"
    plan.write_bytes(msgspec.json.encode(crew.plan))
    command = [sys.executable, "-m", "support.faulty_experiment", str(experiment_dir), str(life), str(plan), crew.entry]
    return subprocess.Popen(
        [*command, str(floor_s), str(crew.start_up_s)], env=children.environment(**environment), stderr=errors,
        start_new_session=True,
    )  # fmt: skip
