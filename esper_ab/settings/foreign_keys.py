"""Keys of other trainers and of Hydra, and what they are called here: for messages only, no setting is read by them.

People bring files written for something else. Their keys are refused as any unknown key is; where there is one of ours
that means the same, the message names it.
"""

from __future__ import annotations

# Keys of ours -> last parts of foreign keys that say the same. A test holds them against the schema.
_THEIRS = {
    ("ppo.lr",): ("learning_rate",),
    ("total_timesteps",): ("num_timesteps",),
    ("steps",): ("max_steps", "rollout_length"),
    ("n_envs", "max_parallel"): ("num_workers",),
    ("n_envs",): ("num_envs",),
    ("rng_seed",): ("seed",),
    ("seeds",): (
        "replicates", "runs_per_variant", "n_runs", "num_seeds", "n_seeds", "pairs", "repeats", "repetitions", "trials",
    ),
    ("devices",): ("device", "num_gpus", "gpus"),
    ("task",): ("env", "env_name", "env_id"),
    ("eval_episodes",): ("evaluate_interval",),
    ("ppo.epochs",): ("update_epochs", "num_epochs"),
    ("ppo.minibatches",): ("num_minibatches", "minibatch_size"),
    ("ppo.gamma",): ("discount",),
    ("ppo.clip",): ("clip_coef", "clip_range"),
    ("ppo.entropy_coef",): ("ent_coef",),
    ("ppo.value_coef",): ("vf_coef",),
    ("policy.hidden",): ("hidden_size", "hidden_dim"),
}
OURS = {theirs: ours for ours, names in _THEIRS.items() for theirs in names}
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
        return f"here that is {' and '.join(ours)}"
    return next((_NONE[part] for part in parts if part in _NONE), "")
