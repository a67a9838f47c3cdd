"""Keys of other trainers and of Hydra, with our names for them. Used in messages only; no setting is read by them.

Users bring files written for other tools. The keys in such files are refused like any unknown key; if one of our
keys means the same, the message names our key.
"""

from __future__ import annotations

# Our keys -> last parts of foreign keys with the same meaning. A test compares them with the schema.
_THEIRS = {
    ("ppo.lr",): ("learning_rate",),
    ("total_timesteps",): ("num_timesteps",),
    ("steps",): ("max_steps", "rollout_length"),
    ("n_envs", "max_parallel"): ("num_workers",),
    ("n_envs",): ("num_envs",),
    ("rng_seed",): ("seed",),
    ("seeds",): (
        "replicates",
        "runs_per_variant",
        "n_runs",
        "num_seeds",
        "n_seeds",
        "pairs",
        "repeats",
        "repetitions",
        "trials",
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
OURS = {name: setting_keys for setting_keys, names in _THEIRS.items() for name in names}  # foreign key -> our keys
# Foreign keys without a counterpart, and why there is none.
_NONE = {
    "defaults": "Hydra's defaults list has no counterpart here: every setting has a default and is set by its key",
    "curriculum": "there is no curriculum here; hosts learn the experiment's task",
    "simulation": "there is no simulation section here; the trained policy is evaluated in eval_episodes episodes",
}


def foreign(key: str) -> str:
    """Return the end of a message about a key of another trainer: our key with the same meaning, or why we have none.

    Return "" if the key is not known to belong to another trainer. `key` is dotted, as in "trainer.learning_rate".
    """
    parts = key.split(".")
    if our_keys := OURS.get(parts[-1]):
        return f"here it is called {' and '.join(our_keys)}"
    return next((_NONE[part] for part in parts if part in _NONE), "")
