"""Flags of `launch` that are no key of a settings file, and what says the same there. Used in messages only.

A test compares them with the flags.
"""

from __future__ import annotations

# Flag -> how a settings file says what it says.
_INSTEAD = {
    "higher": 'write outcome = "NAME" and outcome_better = "higher"',
    "lower": 'write outcome = "NAME" and outcome_better = "lower"',
    "vary": "a file has a table for each group, as in [group.fast] with ppo.lr = 3e-3; or use --vary",
    "set": "a file has the keys themselves, as in ppo.lr = 3e-3",
    "max": "seeds = N is the largest number; interim looks may end the experiment earlier",
    "parallel": "write max_parallel = 1",
}
# Flags about one call of the command, its files or what it prints.
_OF_COMMAND = frozenset(
    (
        "calibration",
        "dry_run",
        "fail_unless",
        "json",
        "no_retry",
        "output_dir",
        "quiet",
        "references",
        "references_limit",
        "reward_audit",
        "track",
        "verbose",
        "wandb_entity",
        "wandb_mode",
        "wandb_project",
        "yes",
    )
)
FLAGS_ALONE = _OF_COMMAND | _INSTEAD.keys()


def said_otherwise(key: str) -> str:
    """Return the end of a message about a key that is a flag of `launch` alone; "" if it is none."""
    name = key.replace("-", "_")
    if name in _OF_COMMAND:
        return f"it is no setting of the experiment; use --{name.replace('_', '-')}"
    return _INSTEAD.get(name, "")
