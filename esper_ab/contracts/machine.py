"""Question and answer of the preflight child: devices, catalogues, checks of rewards, controllers and data."""

from __future__ import annotations

from typing import Literal

import msgspec

from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import ControllerSettings, HostKernel, RewardSettings, Settings
from esper_ab.contracts.trainer import TrainerFacts, TrainerQuestion

DOING = "doing: "  # begins a line of the preflight's stderr that says what it does next


class ControllerQuestion(Settings, frozen=True, kw_only=True):
    """A group whose controller the child constructs once, to check its settings."""

    group: str
    settings: ControllerSettings
    blueprints: tuple[str, ...]


class Questions(Settings, frozen=True, kw_only=True):
    """Experiment-specific checks for the preflight child, besides reporting the machine."""

    task: str
    data_dir: str
    slots: tuple[str, ...] = ()  # empty: all of the task
    user_rewards: tuple[str, ...]  # "path.py:function" or "module:function"
    controllers: tuple[ControllerQuestion, ...] = ()
    # Of kind gymnasium:
    outcome: str = ""
    outcome_better: Literal["higher", "lower"] = "higher"
    outcome_low: float | None = None  # least possible outcome; None: none
    outcome_high: float | None = None
    outcome_worst: float | None = None  # what stands for one that is no number; None: nothing does
    rewards: dict[str, RewardSettings] = msgspec.field(default_factory=dict)  # by group
    # Of kind trainer:
    trainer: TrainerQuestion | None = None
    trainer_outcome: Measure | None = None
    gpus: tuple[str, ...] = ()  # to try, by name, or "cuda", which is all; the others are left alone
    hosts: int = 0  # of growth, that a GPU is timed with; 0: it is not timed
    batch_size: int = 1
    # Of a node:
    shared_file: str = ""  # absolute path of a file that has to be visible; "": none


class Device(Settings, frozen=True, kw_only=True):
    """One GPU of the pool, or one CPU core."""

    name: str  # "cuda:0" in the order of the pool, "cpu:0"
    title: str  # "NVIDIA H200"; "" for a core
    uuid: str  # "GPU-…"; "" for a core
    memory_bytes: int  # of the device; of the whole machine for a core
    capability: str = ""  # compute capability of a GPU, "9.0"
    node: str = ""  # that it belongs to, by its name at the launcher; "": this machine
    step_s: float = 0.0  # measured: an optimiser step of a GPU's hosts with a seed in every slot; 0: not measured


class TaskFacts(Settings, frozen=True, kw_only=True):
    """The facts about one task that planning needs. Fields from `slots` on are growth's; other kinds leave them."""

    name: str
    title: str
    measures: TaskMeasures
    kind: str = "growth"  # names what reports and analyses have for tasks of this kind
    repeats: bool = True  # whether its environments give the same again when they are asked the same
    carries: bool = False  # whether they do so only when they are new: a reset leaves something of what was before
    step_s: float = 0.0  # measured: one step of one environment; 0: not measured
    episode_steps: int = 0  # the environments' own limit; 0: none
    seen_steps: int = 0  # of the longest episode that the preflight has seen end; 0: none has
    observation_width: int = 0  # numbers of one observation; 0 in plans older than this field
    action_bounds: tuple[tuple[float, float] | None, ...] = ()  # by dimension of a box, None where one is infinite
    slots: tuple[str, ...] = ()  # network order
    sizes: tuple[int, int, int] = (0, 0, 0)  # samples in train, validation, test
    sample_values: int = 0  # numbers per sample: C·H·W
    host_params: int = 0
    host_multiply_adds: int = 0  # of one forward pass of one sample
    classes: int = 0  # of the labels; 0: not known
    host_values: int = 0  # activations of all convolutions of one sample; 0 in plans older than this field


class Kernel(Settings, frozen=True, kw_only=True):
    """The native kernel in one width that the CPU of this machine can run."""

    name: HostKernel
    build: str = ""  # as in Arithmetic; "" when it cannot be used
    problem: str = ""  # why not; "" when it can
    remedy: str = ""  # for that, one line


class UserReward(Settings, frozen=True, kw_only=True):
    """A reward function that is not an entry of the catalogue."""

    reference: str
    sha256: str  # of its source files together; "" when it has none
    problem: str  # one line; "" when it can be imported and called
    repeats: bool = True  # whether it gives the same for the same facts
    root: str = ""  # folder of a function given as a file, and ...
    files: tuple[str, ...] = ()  # ... what it was loaded from, below it: its own file first. Empty for a module


class Machine(Settings, frozen=True, kw_only=True):
    """The child's answer: devices, catalogues, and problems found."""

    torch_version: str
    cuda_build: str  # CUDA version torch was built for; "" for a CPU build
    devices: tuple[Device, ...]  # GPUs of the pool first, then cores
    rewards: tuple[str, ...]
    controllers: tuple[str, ...]
    blueprints: tuple[str, ...]
    tasks: tuple[TaskFacts, ...]
    kernels: tuple[Kernel, ...] = ()  # the widest first
    native_blueprints: tuple[str, ...] = ()  # of the blueprints, those that a native kernel trains
    multiply_adds_per_s: float  # measured: training a small grouped convolution by one thread of the CPU
    sources: str = ""  # hash of the code (contracts/installed_code.py)
    sees_shared_file: bool = True
    start_s: float = 0.0  # measured: from the start of the child until it had imported torch
    cpu_bf16: Literal["", "avx512_bf16", "amx_bf16"] = ""  # best bfloat16 instructions of the CPU; "": none
    user_rewards: tuple[UserReward, ...]
    trainer: TrainerFacts | None = None  # of the one asked about
    controller_problems: dict[str, str] = msgspec.field(default_factory=dict)  # group -> why it cannot be made
    reward_problems: dict[str, str] = msgspec.field(default_factory=dict)  # group -> why its reward cannot be computed
    task_problem: str  # why the task's data cannot be read; "" when they can
    gpu_problem: str  # why torch cannot use a GPU that exists; "" when it can use one, or there is none
    unusable_gpus: str = ""  # of those that were tried, how many can be used and why the others cannot; "": all can

    def task(self, name: str) -> TaskFacts:
        """Return the facts about the task `name`, which is one of those that there are."""
        return next(task for task in self.tasks if task.name == name)

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of the devices of a kind: "cuda" or "cpu"."""
        return tuple(device.name for device in self.devices if device.name.startswith(f"{kind}:"))
