"""Small PPO agents for tests."""

from typing import Any

from esper_ab.contracts.rng import run_path
from esper_ab.contracts.settings import Arithmetic, PolicySettings, PPOSettings
from workers.native import library
from workers.ppo.agent import AgentSpec, PPOAgent

TORCH = Arithmetic()
_KERNELS = [kernel for kernel in library.kernels() if not kernel.problem]
# Of everything that computes policies here, once.
ARITHMETICS = [TORCH, *(Arithmetic(kernel=kernel.name, kernel_build=kernel.build) for kernel in _KERNELS)]


def make_agent(
    width: int,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    *,
    rng_seed: int = 0,
    episodes: int = 10,
    arithmetic: Arithmetic = TORCH,
    policy: dict[str, Any],
    **ppo: float,
) -> PPOAgent:
    """Make an agent with `width` observations and a head per name; without `sizes` its actions are continuous."""
    return PPOAgent(
        AgentSpec(
            observation_width=width,
            head_names=names,
            head_sizes=sizes,
            observation_std_floor=0.1,
            policy=PolicySettings(**policy),
            ppo=PPOSettings(**ppo),
            rng=run_path(rng_seed, 0),
            planned_episodes=episodes,
        ),
        arithmetic,
    )
