"""Questions to children of the data plane, and their answers: the preflight, one controller alone, a reward audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import (
    LARGEST,
    Arithmetic,
    ControllerSettings,
    GrowthSettings,
    HostKernel,
    NonNegativeInt,
    PositiveInt,
    RewardSettings,
    Settings,
)
from esper_ab.contracts.trainer import TrainerFacts, TrainerQuestion

# --- gpu names -------------------------------------------------------------------------------------------------------
# What a GPU is called in CUDA_VISIBLE_DEVICES, by which a worker is told its own.
#
# MIG cuts a GPU into instances. A process sees one, the first that the variable names, and only by the name there:
# torch counts it as one GPU, with a UUID that says nothing of instances.


_INSTANCE = "MIG-"


def gpu_names(uuids: Sequence[str], visible: str | None) -> list[str]:
    """Return the names of the GPUs that torch sees, from its UUIDs and the process's CUDA_VISIBLE_DEVICES."""
    named = _named(visible)
    if len(named) == len(uuids) == 1 and named[0].startswith(_INSTANCE):
        return named
    return [f"GPU-{uuid}" for uuid in uuids]


def is_beyond_one_instance(visible: str | None) -> bool:
    """Return whether an instance is named beside others, of which a process would see none."""
    named = _named(visible)
    return len(named) > 1 and any(name.startswith(_INSTANCE) for name in named)


def _named(visible: str | None) -> list[str]:
    return [name.strip() for name in (visible or "").split(",")]


# --- machine ---------------------------------------------------------------------------------------------------------
# Question and answer of the preflight child: devices, catalogues, checks of rewards, controllers and data.


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
    sources: str = ""  # hash of the code (contracts/source_files.py)
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


# --- solo ------------------------------------------------------------------------------------------------------------
# Questions about one controller alone, or about saved policies, without a comparison; and the data plane's answers.


class SoloQuestion(Settings, frozen=True, kw_only=True):
    """The hosts that the heuristic is to grow."""

    task: str
    data_dir: str  # "": the task's own default
    slots: tuple[str, ...]  # empty: all of the task
    episodes: PositiveInt
    steps: PositiveInt  # host epochs, and decisions, per episode
    n_envs: PositiveInt  # hosts per episode
    rng_seed: NonNegativeInt
    device: str  # torch device of the hosts


class Seed(Settings, frozen=True, kw_only=True):
    """The life of one seed in one slot."""

    slot: str
    blueprint: str
    germinated: int  # step, from 1
    advanced: int  # number of times
    end: str  # "fossilized", "pruned", or "" when still alive at the end of the episode
    end_step: int | None
    contribution: float | None  # points, last measured


class Host(Settings, frozen=True, kw_only=True):
    """One host, grown from scratch in one episode."""

    episode: int
    env: int
    seeds: tuple[Seed, ...]  # in the order of their germination
    held_out_accuracy: float  # percent, held out
    params_added: int
    settled_step: int | None  # when the stabilisation latch opened; None: never
    unsettled_steps: int  # steps without a live seed at which the latch was still closed
    improving_steps: int  # steps without a live seed at which the latch was open and there was no plateau
    diverged: bool


class SoloAnswer(Settings, frozen=True, kw_only=True):
    """The hosts that were grown."""

    slots: tuple[str, ...]
    kernel: HostKernel  # what trained them
    hosts: tuple[Host, ...]


class PoliciesQuestion(Settings, frozen=True, kw_only=True):
    """The policies that `esper-ab evaluate` is to play."""

    policies: tuple[str, ...]
    eval_episodes: PositiveInt | None  # None: as many as in the run
    rng_seed: NonNegativeInt | None  # None: the run's own
    device: str  # torch device of the environments
    importable: tuple[str, ...]  # modules that a policy's task may import


class PoliciesAnswer(Settings, frozen=True, kw_only=True):
    """A row, and a line that says the same, for every policy and kind of action."""

    rows: tuple[dict[str, Any], ...]
    lines: tuple[str, ...]
    warnings: tuple[str, ...]


# --- reward audit ----------------------------------------------------------------------------------------------------
# Question and answer of `esper-ab growth rewards` and the data plane: rewards scored before anything trains.
#
# The answer, with what it was made from, is the file that is kept, and part of the plan that includes it.


SCHEMA = 2


class AuditedReward(Settings, frozen=True, kw_only=True):
    """A reward to be audited."""

    name: str  # for tables: its mode, or a group's name
    settings: RewardSettings


class RewardAuditQuestion(Settings, frozen=True, kw_only=True):
    """What is to be played, and which rewards score it."""

    task: str = "digits"
    data_dir: str = ""  # "": the task's own default
    slots: tuple[str, ...] = ()  # empty: all of the task
    rewards: tuple[AuditedReward, ...]
    steps: Annotated[int, Meta(ge=2, le=LARGEST)] = 25  # host epochs, and decisions, per episode
    schedules: Annotated[int, Meta(ge=2, le=LARGEST)] = 64  # random ones
    hosts: PositiveInt = 2  # of each behaviour; the same hosts for all
    searched: NonNegativeInt = 48  # behaviours that the search tries for each reward; 0: no search
    growth: GrowthSettings = GrowthSettings()
    rng_seed: NonNegativeInt = 0
    device: str = "cpu"  # torch device of the hosts
    arithmetic: Arithmetic | None = None  # None: by the kernel where it can be had, else torch


class Played(Settings, frozen=True, kw_only=True):
    """A behaviour and what became of its hosts. Per host: `held_out_accuracy`, percent; else means."""

    name: str
    words: str  # what it does
    kind: Literal["reference", "random"]
    schedule: tuple[str, ...]  # as a controller takes it; empty when another controller played
    controller: str
    held_out_accuracy: tuple[float, ...]
    val_accuracy: float  # at the end, percent
    best_val_accuracy: float  # of the episode, percent
    params_added: float
    fossilized: float
    contributing: float
    pruned: float
    diverged: int  # hosts


class Varied(Settings, frozen=True, kw_only=True):
    """One constant of a reward altered, all else as it was; only those on which a return depends are listed."""

    constant: str  # a key of `reward`
    was: str
    now: str
    returns: tuple[float, ...]  # by behaviour, mean over hosts; empty when the reward refuses this value


class FoundBehaviour(Settings, frozen=True, kw_only=True):
    """What a short search found that maximises a reward, grown again on hosts that the search did not see."""

    behaviour: Played
    returned: float  # on those hosts
    searched_return: float  # on the hosts of the search
    tried: int  # behaviours, without the random schedules it started from


class Scored(Settings, frozen=True, kw_only=True):
    """One reward on all behaviours."""

    reward: AuditedReward
    sha256: str  # of a user's code; "" for a mode of the catalogue
    returns: tuple[tuple[float, ...], ...]  # by behaviour and host: sums over an episode
    by_step: tuple[float, ...]  # mean magnitude of the reward by step, over all hosts
    largest: float  # magnitude of the largest reward of one step
    varied: tuple[Varied, ...]
    found: FoundBehaviour | None  # None without a search


class RewardAuditAnswer(Settings, frozen=True, kw_only=True):
    """All that was played and scored."""

    arithmetic: Arithmetic  # of the hosts
    torch_version: str
    slots: tuple[str, ...]  # that may grow, by name, in network order
    behaviours: tuple[Played, ...]  # reference behaviours first
    scored: tuple[Scored, ...]  # in the order of the question
    found_by_accuracy: FoundBehaviour | None  # by the same search for validation accuracy at the end


class RewardAudit(Settings, frozen=True, kw_only=True):
    """What is kept: an answer, its question, and the state of the code."""

    schema: int
    digest: str  # sha256 of question, arithmetic, versions, and code of the project and of users
    question: RewardAuditQuestion
    sources: str  # hash of the installed sources
    answer: RewardAuditAnswer
