"""Copies of users' reward functions, as they were when the experiment was planned.

A run loads the copy, so the original may be edited while the experiment continues. A reward given as
`module:function` stays where it is installed; a run does not start if the module has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import folder_below
from esper_ab.contracts.machine import UserReward
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.plan.copied_code import REWARDS_FOLDER, copy_code, folder_of


def code_of(reward: UserReward) -> RewardCode:
    """Return a RunSpec's reference to a user's reward function."""
    if not reward.files:
        return RewardCode(reference=reward.reference, folder="", file="", sha256=reward.sha256)
    folder = folder_of(REWARDS_FOLDER, reward.sha256)
    return RewardCode(reference=reward.reference, folder=folder, file=reward.files[0], sha256=reward.sha256)


def keep_rewards(experiment_dir: Path, rewards: Iterable[UserReward]) -> None:
    """Copy the files of the rewards into `experiment_dir`; UsageError if a file has changed since the preflight."""
    for reward in rewards:
        if not reward.files:
            continue
        target = folder_below(experiment_dir, folder_of(REWARDS_FOLDER, reward.sha256))
        if not copy_code(Path(reward.root), reward.files, reward.sha256, target):
            raise UsageError(f"reward={reward.reference} changed while the experiment was planned; launch it again")
