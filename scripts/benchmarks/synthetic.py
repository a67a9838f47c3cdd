"""Synthetic episode and evaluation records of realistic size: every field filled, numbers with all digits."""

import hashlib
import random

from esper_ab.contracts.evaluation import episode_sizes
from esper_ab.contracts.records import (
    EnvEpisode,
    EpisodeRecord,
    EvaluatedEpisode,
    EvaluationRecord,
    HeadUse,
    PPOUpdate,
    SeedEvent,
    Timing,
)
from esper_ab.contracts.worker_order import RunSpec
from workers.kinds.growth.measures import MEASURES

EVENTS_PER_ENV = 18  # of an untrained policy with three slots in 25 steps
_HEADS = ("op", "slot", "blueprint", "style", "tempo", "alpha_target", "alpha_speed", "alpha_curve")
_LIFE = (
    ("germinated", "GERMINATED"),
    ("advanced", "TRAINING"),
    ("advanced", "BLENDING"),
    ("retargeted", "BLENDING"),
    ("pruned", "PRUNED"),
    ("emptied", "DORMANT"),
)


def episode(spec: RunSpec, index: int, draw: random.Random) -> EpisodeRecord:
    """Return one training episode; seed events only with telemetry."""
    events = [event for env in range(spec.n_envs) for event in _events(spec, env, draw)] if spec.telemetry else []
    return EpisodeRecord(
        run=spec.ref,
        episode=index,
        envs=tuple(_env(spec, env, draw) for env in range(spec.n_envs)),
        ppo=_update(draw) if spec.ref.controller == "ppo" else None,
        seed_events=tuple(events),
        timing=_timing(draw),
        digest=hashlib.sha256(f"{spec.ref.name} {index}".encode()).hexdigest(),
    )


def evaluation(spec: RunSpec, draw: random.Random) -> EvaluationRecord:
    """Return the record of the last milestone."""
    episodes = tuple(
        EvaluatedEpisode(
            episode=index,
            actions=actions,
            result=_env(spec, env, draw),
            rewards={mode: draw.gauss(5.0, 2.0) for mode in spec.eval_reward_modes},
        )
        for actions in ("sampled", "greedy")
        for index, size in enumerate(episode_sizes(spec.eval_episodes, spec.n_envs))
        if actions == "sampled" or not index
        for env in range(size)
    )
    return EvaluationRecord(
        run=spec.ref,
        episodes=episodes,
        policy_file=spec.policy_file,
        policy_sha256="0" * 64,
        timing=_timing(draw),
        digest=hashlib.sha256(spec.ref.name.encode()).hexdigest(),
    )


def _env(spec: RunSpec, env: int, draw: random.Random) -> EnvEpisode:
    outcome = draw.uniform(40.0, 80.0)
    ops = (spec.steps - 13, 5, 1, 4, 1, 2) if spec.steps > 13 else (spec.steps, 0, 0, 0, 0, 0)
    values = (
        outcome + draw.random(),
        outcome + 1.0 + draw.random(),
        draw.uniform(0.5, 2.0),
        1090,
        draw.randrange(500, 9000),
        5,
        4,
        1,
        1,
        *ops,
    )
    return EnvEpisode(
        env=env,
        device=spec.env_devices[env],
        steps=spec.steps,
        outcome=outcome,
        reward_sum=draw.gauss(10.0, 20.0),
        failed=False,
        measures={name: float(value) for name, value in zip(MEASURES.names, values, strict=True)},
    )


def _update(draw: random.Random) -> PPOUpdate:
    return PPOUpdate(
        policy_loss=draw.gauss(0.0, 0.05),
        value_loss=draw.uniform(0.1, 0.4),
        entropy=draw.uniform(1.0, 3.0),
        op_entropy=draw.random(),
        approx_kl=draw.uniform(0.001, 0.02),
        clip_fraction=draw.uniform(0.0, 0.3),
        explained_variance=draw.random(),
        grad_norm=draw.uniform(0.3, 3.0),
        first_ratio_error=1e-8 * draw.random(),
        ratio_max=1.0 + draw.random(),
        epochs_done=4,
        stopped_by_kl=False,
        advantage_std=draw.uniform(1.0, 20.0),
        return_mean=draw.gauss(8.0, 2.0),
        heads={head: HeadUse(entropy=draw.random(), learnable=0.01 + 0.9 * draw.random()) for head in _HEADS},
    )


def _events(spec: RunSpec, env: int, draw: random.Random) -> list[SeedEvent]:
    """Return lives of seeds, in step order."""
    events = []
    for place in range(EVENTS_PER_ENV):
        event, stage = _LIFE[place % len(_LIFE)]
        events.append(
            SeedEvent(
                env=env,
                step=1 + place * spec.steps // EVENTS_PER_ENV,
                slot=spec.slots[place % len(spec.slots)],
                event=event,
                seed_id=f"e{env}s{place // len(_LIFE)}",
                blueprint="conv_light",
                stage=stage,
                alpha=0.0,
                contribution=draw.gauss(0.0, 5.0) if stage == "BLENDING" else None,
                params=draw.randrange(40, 9000),
            )
        )
    return events


def _timing(draw: random.Random) -> Timing:
    return Timing(
        total_s=draw.uniform(0.9, 1.1),
        train_s=0.7 * draw.random(),
        validate_s=0.2 * draw.random(),
        decide_s=0.1 * draw.random(),
        update_s=0.1 * draw.random(),
    )
