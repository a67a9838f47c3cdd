"""The plan of a real experiment that is as small as one can be: for this machine, by everything that plans one."""

from __future__ import annotations

from esper_ab.contracts.settings import GroupSettings, GrowthSettings, PolicySettings, PPOSettings, RewardSettings
from esper_ab.execution.experiment import plan_on
from esper_ab.plan.plan import Plan
from esper_ab.settings.eval_episodes import choose_eval_episodes
from esper_ab.settings.experiment import AskedExperiment, Group
from esper_ab.settings.kinds import kind_of
from workers.commands.describe import describe


def small_plan(replicates: int, episodes: int) -> Plan:
    """Two groups that learn by different rewards on digits, two environments each, a lane for each."""
    asked = AskedExperiment(
        name="small", groups=(_group("a", "shaped"), _group("b", "simplified")), devices=("cpu:0", "cpu:1"),
        seeds=replicates, episodes=episodes, steps=3, n_envs=2, eval_episodes=2,
    )  # fmt: skip
    return plan_on(describe(kind_of(asked.task).ask(asked)), asked, asked.name, choose_eval_episodes(asked))[0]


def _group(name: str, mode: str) -> Group:
    return Group(name=name, settings=GroupSettings(
        reward=RewardSettings(mode=mode), policy=PolicySettings(hidden=16), ppo=PPOSettings(epochs=1),
        growth=GrowthSettings(blueprints=("norm", "conv_light")),
    ))  # fmt: skip
