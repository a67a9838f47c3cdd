"""Question and answer of the preflight child: devices, catalogues, checks of rewards, controllers and data."""

from __future__ import annotations

from typing import Literal

import msgspec

from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import (
    ControllerSettings,
    HostKernel,
    RewardSettings,
    Settings,
)
from esper_ab.contracts.trainer import TrainerFacts, TrainerQuestion

DOING = "doing: "  # prefix of a line on stderr in which the preflight announces its next step


class ControllerQuestion(Settings, frozen=True, kw_only=True):
    """A group whose controller the preflight constructs once, to check the group's settings."""

    group: str
    settings: ControllerSettings
    blueprints: tuple[str, ...]


class Questions(Settings, frozen=True, kw_only=True):
    """Checks of one experiment that are done by the preflight child, in addition to describing the machine."""

    task: str
    data_dir: str
    slots: tuple[str, ...] = ()  # empty: all of the task's
    user_rewards: tuple[str, ...]  # "path.py:function" or "module:function"
    controllers: tuple[ControllerQuestion, ...] = ()
    # For kind gymnasium:
    outcome: str = ""
    outcome_better: Literal["higher", "lower"] = "higher"
    outcome_low: float | None = None  # least possible outcome; None: none
    outcome_high: float | None = None
    outcome_worst: float | None = None  # replaces a NaN; None: it is not replaced
    rewards: dict[str, RewardSettings] = msgspec.field(default_factory=dict)  # by group
    # For kind trainer:
    trainer: TrainerQuestion | None = None
    trainer_outcome: Measure | None = None
    gpus: tuple[str, ...] = ()  # GPUs to try, by name, or "cuda" for all; the others are not touched
    hosts: int = 0  # growth hosts with which a GPU is timed; 0: do not time it
    batch_size: int = 1
    # For a node:
    shared_file: str = ""  # absolute path of a file that must be visible; "": none


class Device(Settings, frozen=True, kw_only=True):
    """One GPU of the pool, or one CPU core."""

    name: str  # "cuda:0", numbered in the order of the pool, or "cpu:0"
    title: str  # "NVIDIA H200"; "" for a core
    uuid: str  # "GPU-…"; "" for a core
    memory_bytes: int  # of the device; of the whole machine for a core
    capability: str = ""  # compute capability of a GPU, "9.0"
    node: str = ""  # the launcher's name for its node; "": this machine
    step_s: float = 0.0  # measured: a step of a GPU's hosts, with a seed module in every slot; 0: not measured


class TaskFacts(Settings, frozen=True, kw_only=True):
    """Facts about one task for planning. For kinds other than growth, the fields from `slots` on have defaults."""

    name: str
    title: str
    measures: TaskMeasures
    kind: str = "growth"  # selects parts of reports and analyses
    repeats: bool = True  # whether its environments repeat an episode, given the same seed and actions
    carries: bool = False  # whether they do so only when newly made, because a reset keeps some state
    step_s: float = 0.0  # measured: one step of one environment; 0: not measured
    episode_steps: int = 0  # the environments' own limit; 0: none
    seen_steps: int = 0  # length of the longest episode that ended in the preflight; 0: none ended
    observation_width: int = 0  # numbers per observation; 0 in plans older than this field
    action_bounds: tuple[tuple[float, float] | None, ...] = ()  # by dimension of a box, None if one is infinite
    slots: tuple[str, ...] = ()  # network order
    sizes: tuple[int, int, int] = (0, 0, 0)  # samples in train, validation, test
    sample_values: int = 0  # numbers per sample: C·H·W
    host_params: int = 0
    host_multiply_adds: int = 0  # per forward pass of one sample
    classes: int = 0  # of the labels; 0: unknown
    host_values: int = 0  # activations of all convolutions for one sample; 0 in plans older than this field


class Kernel(Settings, frozen=True, kw_only=True):
    """The native kernel for one SIMD width that the CPU of this machine supports."""

    name: HostKernel
    build: str = ""  # as in Arithmetic; "" if it cannot be used
    problem: str = ""  # why not; "" if it can
    remedy: str = ""  # one line


class UserReward(Settings, frozen=True, kw_only=True):
    """A reward function that is not an entry of the catalogue."""

    reference: str
    sha256: str  # of its source files together; "" if there are none
    problem: str  # one line; "" if it can be imported and called
    repeats: bool = True  # whether it returns the same for the same facts
    root: str = ""  # folder of a function given as a file
    files: tuple[str, ...] = ()  # its source files relative to `root`, its own file first; empty for a module


class Machine(Settings, frozen=True, kw_only=True):
    """The preflight's answer: devices, catalogues, and problems found."""

    torch_version: str
    cuda_build: str  # CUDA version torch was built for; "" for a CPU build
    devices: tuple[Device, ...]  # GPUs of the pool first, then cores
    rewards: tuple[str, ...]
    controllers: tuple[str, ...]
    blueprints: tuple[str, ...]
    tasks: tuple[TaskFacts, ...]
    kernels: tuple[Kernel, ...] = ()  # the widest first
    native_blueprints: tuple[str, ...] = ()  # blueprints that a native kernel can train
    multiply_adds_per_s: float  # measured while one CPU thread trains a small grouped convolution
    sources: str = ""  # hash of the code (contracts/source_files.py)
    sees_shared_file: bool = True
    start_s: float = 0.0  # measured: from the start of the child until it had imported torch
    spawned_because: str = ""  # why workers cannot be forked from a process that has imported torch; "": they can
    cpu_bf16: Literal["", "avx512_bf16", "amx_bf16"] = ""  # best bfloat16 instructions of the CPU; "": none
    user_rewards: tuple[UserReward, ...]
    trainer: TrainerFacts | None = None  # of the trainer that was asked about
    controller_problems: dict[str, str] = msgspec.field(default_factory=dict)  # group -> why it cannot be made
    reward_problems: dict[str, str] = msgspec.field(default_factory=dict)  # group -> why its reward cannot be computed
    task_problem: str  # why the task's data cannot be read; "" if it can
    gpu_problem: str  # why torch cannot use an existing GPU; "" if it can use one, or if there is none
    unusable_gpus: str = ""  # how many of the tried GPUs can be used, and why the others cannot; "": all can

    def task(self, name: str) -> TaskFacts:
        """Return the facts about the task `name`, which must be one of `tasks`."""
        return next(task for task in self.tasks if task.name == name)

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of all devices of a kind: "cuda" or "cpu"."""
        return tuple(device.name for device in self.devices if device.name.startswith(f"{kind}:"))
