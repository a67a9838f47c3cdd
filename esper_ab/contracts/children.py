"""Questions to child processes of the data plane, and their answers.

The children are the preflight, `growth heuristic`, `evaluate` and the reward audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.records import Count, Number
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
# The name of a GPU in CUDA_VISIBLE_DEVICES, which tells a worker which GPU it owns.
#
# MIG splits a GPU into instances. A process can use only the first instance that is named in the variable, and only by
# that name, because torch counts the instance as one GPU whose UUID does not identify the instance.


_INSTANCE = "MIG-"


def gpu_names(uuids: Sequence[str], visible: str | None) -> list[str]:
    """Return the names of the GPUs that torch sees, from their UUIDs and the process's CUDA_VISIBLE_DEVICES."""
    named = _named(visible)
    if len(named) == len(uuids) == 1 and named[0].startswith(_INSTANCE):
        return named
    return [f"GPU-{uuid}" for uuid in uuids]


def is_beyond_one_instance(visible: str | None) -> bool:
    """Whether `visible` names a MIG instance together with further devices, which torch would not see."""
    named = _named(visible)
    return len(named) > 1 and any(name.startswith(_INSTANCE) for name in named)


def _named(visible: str | None) -> list[str]:
    return [name.strip() for name in (visible or "").split(",")]


# --- machine ---------------------------------------------------------------------------------------------------------
# Question and answer of the preflight child: devices, catalogues, checks of rewards, controllers and data.


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


# --- solo ------------------------------------------------------------------------------------------------------------
# Questions about one controller or about saved policies, without a comparison, and the data plane's answers.


class SoloQuestion(Settings, frozen=True, kw_only=True):
    """The hosts that `growth heuristic` should grow."""

    task: str
    data_dir: str  # "": the task's own default
    slots: tuple[str, ...]  # empty: all of the task's
    episodes: PositiveInt
    steps: PositiveInt  # host epochs, and decisions, per episode
    n_envs: PositiveInt  # hosts per episode
    rng_seed: NonNegativeInt
    device: str  # torch device of the hosts


class Seed(Settings, frozen=True, kw_only=True):
    """The life of one seed module in one slot."""

    slot: str
    blueprint: str
    germinated: int  # step, from 1
    advanced: int  # number of times
    end: str  # "fossilized", "pruned", or "" if still alive at the end of the episode
    end_step: int | None
    contribution: float | None  # points, last measured


class Host(Settings, frozen=True, kw_only=True):
    """One host, grown from scratch in one episode."""

    episode: int
    env: int
    seeds: tuple[Seed, ...]  # in the order of their germination
    held_out_accuracy: float  # percent, held out
    params_added: int
    settled_step: int | None  # step at which the stabilisation latch opened; None: never
    unsettled_steps: int  # steps without a live seed module while the latch was closed
    improving_steps: int  # steps without a live seed module while the latch was open, but without a plateau
    diverged: bool


class SoloAnswer(Settings, frozen=True, kw_only=True):
    """The hosts that the heuristic controller grew."""

    slots: tuple[str, ...]
    kernel: HostKernel  # what trained them
    hosts: tuple[Host, ...]


class PoliciesQuestion(Settings, frozen=True, kw_only=True):
    """The policies that `esper-ab evaluate` should evaluate, with the options of the evaluation."""

    policies: tuple[str, ...]
    eval_episodes: PositiveInt | None  # None: as in the run
    rng_seed: NonNegativeInt | None  # None: the run's own
    device: str  # torch device of the environments
    importable: tuple[str, ...]  # modules that a policy's task may import


class PoliciesAnswer(Settings, frozen=True, kw_only=True):
    """The results per policy and kind of action, as rows and as lines of text with the same content."""

    rows: tuple[dict[str, Any], ...]
    lines: tuple[str, ...]
    warnings: tuple[str, ...]


# --- reward audit ----------------------------------------------------------------------------------------------------
# Question and answer of `esper-ab growth rewards` and the data plane, which scores rewards before any training.
#
# The answer and its question are saved to a file, and become part of a plan that includes them.


SCHEMA = 2


class AuditedReward(Settings, frozen=True, kw_only=True):
    """A reward to audit."""

    name: str  # for tables: its mode, or a group's name
    settings: RewardSettings


class RewardAuditQuestion(Settings, frozen=True, kw_only=True):
    """The behaviours to play, and the rewards that score them."""

    task: str = "digits"
    data_dir: str = ""  # "": the task's own default
    slots: tuple[str, ...] = ()  # empty: all of the task's
    rewards: tuple[AuditedReward, ...]
    steps: Annotated[int, Meta(ge=2, le=LARGEST)] = 25  # host epochs, and decisions, per episode
    schedules: Annotated[int, Meta(ge=2, le=LARGEST)] = 64  # random schedules
    hosts: PositiveInt = 2  # per behaviour; the same hosts for all
    searched: NonNegativeInt = 48  # behaviours to try per reward in the search; 0: no search
    growth: GrowthSettings = GrowthSettings()
    rng_seed: NonNegativeInt = 0
    device: str = "cpu"  # torch device of the hosts
    arithmetic: Arithmetic | None = None  # None: the kernel if available, else torch


class Played(Settings, frozen=True, kw_only=True):
    """A behaviour and its results: `held_out_accuracy` in percent per host, other numbers as means over hosts."""

    name: str
    words: str  # description of the behaviour
    kind: Literal["reference", "random"]
    schedule: tuple[str, ...]  # in the schedule controller's notation; empty if another controller played
    controller: str
    held_out_accuracy: tuple[Number, ...]
    val_accuracy: Number  # at the end, percent
    best_val_accuracy: Number  # of the episode, percent
    params_added: Number
    fossilized: Number
    contributing: Number
    pruned: Number
    diverged: Count  # hosts


class Varied(Settings, frozen=True, kw_only=True):
    """The effect of changing one constant of a reward. Constants that affect no return are not listed."""

    constant: str  # a key of `reward`
    was: str
    now: str
    returns: tuple[Number, ...]  # by behaviour, mean over hosts; empty if the reward refuses this value


class FoundBehaviour(Settings, frozen=True, kw_only=True):
    """The best behaviour that a short search found for a reward, replayed on hosts that the search did not use."""

    behaviour: Played
    returned: Number  # on the hosts of the replay
    searched_return: Number  # on the hosts of the search
    tried: Count  # number of behaviours, not counting the random schedules that the search started from


class Scored(Settings, frozen=True, kw_only=True):
    """The scores of all behaviours under one reward."""

    reward: AuditedReward
    sha256: str  # of a user's code; "" for a mode of the catalogue
    returns: tuple[tuple[Number, ...], ...]  # by behaviour and host: sums over an episode
    by_step: tuple[Number, ...]  # mean magnitude of the reward by step, over all hosts
    largest: Number  # magnitude of the largest reward of one step
    varied: tuple[Varied, ...]
    found: FoundBehaviour | None  # None if there was no search


class RewardAuditAnswer(Settings, frozen=True, kw_only=True):
    """The results of a reward audit."""

    arithmetic: Arithmetic  # of the hosts
    torch_version: str
    slots: tuple[str, ...]  # where a seed module may grow, in network order
    behaviours: tuple[Played, ...]  # reference behaviours first
    scored: tuple[Scored, ...]  # in the order of the question
    found_by_accuracy: FoundBehaviour | None  # by the same search, which maximised validation accuracy at the end


class RewardAudit(Settings, frozen=True, kw_only=True):
    """A saved reward audit: an answer, its question, and the state of the code."""

    schema: Count
    digest: str  # sha256 of question, arithmetic, versions, and code of the project and of users
    question: RewardAuditQuestion
    sources: str  # hash of the installed sources
    answer: RewardAuditAnswer
