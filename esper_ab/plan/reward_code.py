"""Users' reward functions as they were when the experiment was planned: copies in the experiment directory.

A run loads the copy, whichever day it starts, so that the original may be edited while the experiment goes on. What is
given as `module:function` stays where it is installed; a run that finds it changed does not begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from esper_ab.contracts.below import folder_below
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import UserReward
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.source_files import copy_files, source_sha256

_FOLDER, _SHOWN = "rewards", 12  # in an experiment directory; characters of a hash that name a folder in it


def code_of(reward: UserReward) -> RewardCode:
    """Reference of a user's reward function, as a run gets it from the preflight."""
    folder, file = (_folder(reward), reward.files[0]) if reward.files else ("", "")
    return RewardCode(reference=reward.reference, folder=folder, file=file, sha256=reward.sha256)


def keep(experiment_dir: Path, rewards: Iterable[UserReward]) -> None:
    """Copy their files into `experiment_dir`; UsageError when one is no longer what the preflight loaded."""
    for reward in rewards:
        if not reward.files:
            continue
        target = folder_below(experiment_dir, _folder(reward))
        try:
            copy_files(Path(reward.root), reward.files, target)
            same = source_sha256(target, reward.files) == reward.sha256
        except FileNotFoundError:
            same = False
        if not same:
            raise UsageError(f"reward={reward.reference} was changed while the experiment was planned; start it again")


def _folder(reward: UserReward) -> str:
    return f"{_FOLDER}/{reward.sha256[:_SHOWN]}"
