"""What a worker is told when it starts: its lane, its runs and the code of the user that it loads."""

from __future__ import annotations

import os

from esper_ab.contracts.message import Message
from esper_ab.contracts.records import CopyBelow, FileBelow, Number, RunRef
from esper_ab.contracts.settings import Arithmetic, GroupSettings, NonNegativeInt, PositiveInt
from esper_ab.contracts.trainer import TrainerOrder


class Lane(Message, frozen=True, kw_only=True, tag="Lane"):
    """The devices that one worker owns as long as it lives, by their names in the plan and their physical identity."""

    name: str  # "cpu:0", "cuda:1", "cuda:0+cuda:1"
    devices: tuple[str, ...]  # ("cuda:0", "cuda:1")
    # The UUIDs of the intended devices, one per device ("" for CPU); the worker checks them. A plan has the UUIDs seen
    # when it was made; a WorkerOrder has those of the devices to which the lane is bound when its worker starts.
    uuids: tuple[str, ...]
    titles: tuple[str, ...] = ()  # product names, one per device; "" for CPU; empty if unknown


class RewardCode(Message, frozen=True, kw_only=True, tag="RewardCode"):
    """A user's reward function as it was when the experiment was planned; all runs use this version."""

    reference: str  # as in the settings
    folder: CopyBelow  # copies of it and its local imports, relative to the experiment directory; "": not copied
    file: CopyBelow  # its copy, relative to that folder; "" if there is none
    sha256: str  # of all copies together, or of the installed module; "" if that has no source


class RunSpec(Message, frozen=True, kw_only=True, tag="RunSpec"):
    """The complete specification of one run; a worker receives no other information about the run."""

    ref: RunRef
    experiment_digest: str
    rng_seed: NonNegativeInt
    rng_label: str  # "" if paired; with --unpaired a group label, which is part of every rng address
    task: str
    data_dir: str  # "" = the task's own default
    slots: tuple[str, ...]
    n_envs: PositiveInt
    episodes: PositiveInt
    steps: PositiveInt  # decisions per episode = host epochs
    eval_episodes: PositiveInt  # played with the trained policy's sampled actions; contracts/measures.py splits them
    eval_reward_modes: tuple[str, ...]  # computed on every evaluation episode
    env_devices: tuple[str, ...]  # device of env i, length n_envs
    settings: GroupSettings
    arithmetic: Arithmetic
    telemetry: bool
    policy_file: FileBelow  # relative to the experiment directory
    log_file: FileBelow  # relative to the experiment directory
    reward_code: tuple[RewardCode, ...] = ()  # of the user's own functions among modes, task and outcome
    outcome: str = ""  # "": the task's own; for kind gymnasium "info:KEY" or a user's function
    outcome_worst: Number | None = None  # for kind gymnasium: replaces a NaN; None: it is not replaced
    repeats: bool = True  # whether the task's environments repeat an episode, given the same seed and actions
    trainer: TrainerOrder | None = None  # the user's own trainer; None: the kind's


class UsersShell(Message, frozen=True, kw_only=True, tag="UsersShell"):
    """What a program that the user starts from the shell inherits (contracts/users_shell.py)."""

    environment: bytes  # NAME=VALUE, each with a zero byte behind it, because values need not be UTF-8
    umask: int
    ignored: tuple[int, ...]  # signals
    blocked: tuple[int, ...]  # signals
    soft_limits: tuple[tuple[int, int], ...]  # (RLIMIT_…, limit); -1: none

    def variables(self) -> dict[str, str]:
        """Return the environment variables, as in `os.environ`."""
        entries = os.fsdecode(self.environment).split("\0")[:-1]
        variables = {}
        for entry in entries:
            name, _, value = entry.partition("=")
            variables[name] = value
        return variables

    def for_guard(self) -> str:
        """Return everything except the environment as one word for contracts/guard.py."""
        ignored_signals = ",".join(map(str, self.ignored))
        blocked_signals = ",".join(map(str, self.blocked))
        limits = ",".join(f"{number}={limit}" for number, limit in self.soft_limits)
        return f"{self.umask};{ignored_signals};{blocked_signals};{limits}"


class WorkerOrder(Message, frozen=True, kw_only=True, tag="WorkerOrder"):
    """What a new worker needs in order to set up its process and send Hello. Its runs arrive later, as messages."""

    endpoint: str
    worker: str  # "w00"; with the incarnation, its identity on the wire: "w00/1"
    incarnation: int  # 1, 2, …: how often this worker has been started
    lane: Lane
    arithmetic: Arithmetic
    experiment_dir: str
    log_file: str  # relative to the experiment directory
    node: str = ""  # the launcher's name for the lane's node; "": the coordinator's own machine
    server_key: str = ""  # the coordinator's public key (contracts/link_keys.py); "" if the endpoint needs none
    lost_after_s: float = 0.0  # the worker exits after this time without a connection; 0: it exits with its parent
    beat_s: float = 2.0  # between two heartbeats of its connection
    shell: UsersShell | None = None  # what the user's programs inherit; None: what the worker's process has inherited
    needs_torch: bool = True  # False: its runs are commands, and the worker only guards them

    @property
    def writer(self) -> int:
        """Number in the names of this worker's checkpoints.

        A worker that exits with its parent cannot write any more once it is given up, so its number is always 1. Any
        other worker might still write after it is given up, because its node may only be unreachable. Its number is
        therefore its incarnation, which keeps its files apart from those of its successor.
        """
        return self.incarnation if self.lost_after_s else 1

    @property
    def identity(self) -> str:
        """Name on the wire; the incarnation distinguishes this worker's messages from those of its predecessors."""
        return f"{self.worker}/{self.incarnation}"
