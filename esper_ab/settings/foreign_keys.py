"""Keys of other trainers and of Hydra, and what they are called here: for messages only, no setting is read by them.

People bring files written for something else. Their keys are refused as any unknown key is; where there is one of ours
that means the same, the message names it.
"""

from __future__ import annotations

# Last part of a foreign key -> keys of ours that say the same. A test holds them against the schema.
OURS: dict[str, tuple[str, ...]] = {
    "learning_rate": ("ppo.lr",),
    "total_timesteps": ("episodes", "steps", "n_envs"),
    "num_timesteps": ("episodes", "steps", "n_envs"),
    "max_steps": ("steps",),
    "rollout_length": ("steps",),
    "num_workers": ("n_envs", "max_parallel"),
    "num_envs": ("n_envs",),
    "seed": ("rng_seed",),
    "device": ("devices",),
    "num_gpus": ("devices",),
    "gpus": ("devices",),
    "env": ("task",),
    "env_name": ("task",),
    "env_id": ("task",),
    "evaluate_interval": ("eval_episodes",),
    "runs_per_variant": ("seeds",),
    "n_runs": ("seeds",),
    "num_seeds": ("seeds",),
    "n_seeds": ("seeds",),
    "pairs": ("seeds",),
    "repeats": ("seeds",),
    "repetitions": ("seeds",),
    "trials": ("seeds",),
    "update_epochs": ("ppo.epochs",),
    "num_epochs": ("ppo.epochs",),
    "num_minibatches": ("ppo.minibatches",),
    "minibatch_size": ("ppo.minibatches",),
    "discount": ("ppo.gamma",),
    "clip_coef": ("ppo.clip",),
    "clip_range": ("ppo.clip",),
    "ent_coef": ("ppo.entropy_coef",),
    "vf_coef": ("ppo.value_coef",),
    "hidden_size": ("policy.hidden",),
    "hidden_dim": ("policy.hidden",),
}

# Those that have no counterpart, and why not.
_NONE = {
    "defaults": "Hydra's defaults list has no counterpart here: every setting has its default and is named by its key",
    "curriculum": "there is no curriculum here; what hosts learn is the experiment's task",
    "simulation": "there is no simulation section here; the finished policy is evaluated in eval_episodes episodes",
}


def foreign(key: str) -> str:
    """The end of a sentence about a key of another trainer; "" for one that nobody is known to use.

    `key`: dotted, as "trainer.learning_rate".
    """
    parts = key.split(".")
    if ours := OURS.get(parts[-1]):
        return f"here that is {' x '.join(ours) if parts[-1].endswith('timesteps') else ' and '.join(ours)}"
    return next((_NONE[part] for part in parts if part in _NONE), "")
