"""One episode: environments, a decider and rewards, step by step. The same loop trains and evaluates.

Independent of sockets and records; it returns numbers per environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from esper_ab.contracts.records import EnvEpisode, finite
from workers.controller import Controller
from workers.facts import Bools, Floats, StepFacts
from workers.growth.environment import GrowthEnv
from workers.growth.measures import MEASURES
from workers.growth.rules.view import DecisionView
from workers.growth.stopwatch import Stopwatch

Reward = Callable[[StepFacts], Floats]


@dataclass(frozen=True, kw_only=True)
class EpisodeResult:
    """Result of an episode: one row per environment, and the summed rewards under every requested mode."""

    envs: tuple[EnvEpisode, ...]
    rewards: dict[str, Floats]  # mode -> [E]


def play(
    env: GrowthEnv, decider: Controller, rewards: Mapping[str, Reward], stopwatch: Stopwatch,
    on_step: Callable[[int], None],
) -> EpisodeResult:
    """Play an episode that `env.begin_episode` has begun.

    The decider learns from the first of `rewards`; the others are only summed. A reward is delivered one step late,
    because only the next epoch shows whether the host survived the decision: a diverged host's last executed decision
    gets the penalty and is terminal; its later steps do not exist. ValueError names a mode that is not finite.
    """
    decider.begin_episode(env.n_envs)
    sums = {mode: np.zeros(env.n_envs) for mode in rewards}
    pending: Floats | None = None
    while env.step < env.steps and env.alive.any():
        was_alive = env.alive.copy()
        view = env.advance()
        on_step(env.step)
        broken = was_alive & ~view.alive
        if pending is None:
            decider.exclude(broken)
        else:
            _deliver(decider, pending, broken, env.spec.reward.divergence_penalty, sums)
        if not view.alive.any():
            pending = None
            break
        with stopwatch.phase("decide"):
            decisions = decider.decide(view, env.uniforms())
            facts = env.facts(decisions)
            earned = {mode: _earned(mode, reward(facts), view) for mode, reward in rewards.items()}
            for mode, values in earned.items():
                sums[mode] += values
            env.execute(decisions)
        pending = next(iter(earned.values())) if earned else np.zeros(env.n_envs)
    if pending is not None:
        decider.reward(pending, np.ones(env.n_envs, dtype=np.bool_))
    return EpisodeResult(envs=_outcomes(env, sums), rewards=sums)


def _earned(mode: str, values: Floats, view: DecisionView) -> Floats:
    """Return rewards [E], 0 where an environment has ended; ValueError when another one is not finite."""
    earned = np.where(view.alive, values, 0.0)
    if not np.isfinite(earned).all():
        raise ValueError(f"reward mode {mode!r} is not finite at step {view.step}: {values.tolist()}")
    return earned


def _deliver(decider: Controller, pending: Floats, broken: Bools, penalty: float, sums: dict[str, Floats]) -> None:
    """Deliver the reward of the previous decision, with the penalty where it was a diverged host's last."""
    for values in sums.values():
        values[broken] += penalty
    decider.reward(pending + np.where(broken, penalty, 0.0), broken)


def _known(value: float) -> float:
    """Replace a missing percentage by 0: an environment that diverged in its first epoch has no measurement."""
    return value if np.isfinite(value) else 0.0


def _outcomes(env: GrowthEnv, sums: dict[str, Floats]) -> tuple[EnvEpisode, ...]:
    accuracy = env.held_out_accuracy()
    own = next(iter(sums.values()), np.zeros(env.n_envs))
    return tuple(
        EnvEpisode(
            env=i, device=env.spec.env_devices[i], steps=int(env.steps_done[i]), outcome=float(accuracy[i]),
            reward_sum=finite(float(own[i])), failed=bool(env.diverged[i]),
            measures=dict(zip(MEASURES.names, _measured(env, i), strict=True)),
        )
        for i in range(env.n_envs)
    )


def _measured(env: GrowthEnv, i: int) -> tuple[float | None, ...]:
    """Return the measures of host `i` in the order of `MEASURES`."""
    lifecycle = env.lifecycle
    counts = (
        env.host_params, lifecycle.table.params[i].sum(), lifecycle.germinated[i], lifecycle.pruned[i],
        lifecycle.fossilized[i], lifecycle.contributing[i], *lifecycle.op_counts[i],
    )  # fmt: skip
    return (
        _known(float(env.val_acc[i])), _known(float(env.best_val_acc[i])), finite(float(env.val_loss[i])),
        *map(float, counts),
    )  # fmt: skip
