"""Kinds of task, and the settings of one group: everything in which two groups may differ.

Settings are frozen and typed, and unknown keys are refused. Accuracies are percentages (0-100) everywhere; differences
of accuracies are in points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from esper_ab.contracts.plain_values import LARGEST
from esper_ab.contracts.trainer import TrainerValue

# What reads a setting: every kind of task, every kind whose policies esper_ab trains, or the kinds with these names. A
# kind may also read settings of others (SettingsKind.also_reads).
EVERY_KIND = "every kind"
POLICIES = "policies"


@dataclass(frozen=True)
class Spec:
    """The rules of one setting beyond its type, bounds and default; they are part of the annotation of its field.

    "Parts" are the experiments that make up a joint experiment over several tasks or a grid.
    """

    kinds: tuple[str, ...] = ()  # kinds of task that read it; (): all that read its section
    flag: str = ""  # its flag, if that differs from the key; "no_…" turns it off
    # What its text names; a path in the text is made absolute.
    names: Literal["", "task", "function", "folder", "trainer", "code"] = ""
    same: bool = False  # whether it is the same in all parts
    alone: str = ""  # why it cannot be used with several parts
    later: bool = (
        False  # whether hashes omit it while it has its default, so that those of older versions stay the same
    )


Positive = Annotated[float, Meta(gt=0.0)]
NonNegative = Annotated[float, Meta(ge=0.0)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
# Settings that hashes omit while they have their defaults, because older versions lack them.
LaterFlag = Annotated[bool, Spec(later=True)]
LaterPositive = Annotated[float, Meta(gt=0.0), Spec(later=True)]
LaterNonNegative = Annotated[float, Meta(ge=0.0), Spec(later=True)]
# Initial bias of a logit of growth's op head; with a larger bias, some choices would never be made.
Logit = Annotated[float, Meta(ge=-20.0, le=20.0), Spec(("growth",))]
# What computes policies and trains hosts: torch, or the kernel of workers/native for these vector instructions.
HostKernel = Literal["torch", "native-avx512", "native-avx2", "native-generic"]
# The variance in the test of a comparison: its own, or one that is shrunk to the mean of all comparisons.
Variances = Literal["own", "moderated"]
PositiveInt = Annotated[int, Meta(ge=1, le=LARGEST)]
NonNegativeInt = Annotated[int, Meta(ge=0, le=LARGEST)]

DEFAULT_BLUEPRINTS = ("norm", "attention", "depthwise", "bottleneck", "conv_small", "conv_light", "conv_heavy")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every settings struct: immutable and keyword-only; decoding refuses unknown keys."""

    kinds: ClassVar[tuple[str, ...]] = (EVERY_KIND,)  # that read these fields, unless a field says otherwise


class _Learner(Settings, frozen=True, kw_only=True):
    """Base of the settings that only policies trained by esper_ab read."""

    kinds: ClassVar[tuple[str, ...]] = (POLICIES,)


class ControllerSettings(_Learner, frozen=True, kw_only=True):
    """The controller: `ppo` learns; `wait`, `random`, `heuristic`, `looking` and `schedule` do not."""

    name: str = "ppo"  # or one that does not learn
    # For `schedule`: an entry per decision, "step:op:slot[:head=value…]", as "1:germinate:early:blueprint=conv_light".
    # Empty: germinate conv_light in every slot at once and advance as soon as possible.
    schedule: Annotated[tuple[str, ...], Spec(("growth",))] = ()


class PolicySettings(_Learner, frozen=True, kw_only=True):
    """The actor-critic: its network, initial weights and inputs (docs/internals/training.md)."""

    # At least 2, because features are normalised over them, and a single one would be constant.
    hidden: Annotated[int, Meta(ge=2, le=LARGEST)] = 64
    memory: Literal["lstm", "none"] = "lstm"  # none: decisions depend on the current observations only
    activation: Annotated[Literal["tanh", "relu"], Spec(later=True)] = "tanh"  # of hidden layers; not of the LSTM
    layer_norm: LaterFlag = True  # of the first hidden layer and after the LSTM
    # separate: actor and critic have no weight in common, and a memory each.
    trunk: Annotated[Literal["shared", "separate"], Spec(later=True)] = "shared"
    init: Annotated[Literal["orthogonal", "xavier", "pytorch"], Spec(later=True)] = "orthogonal"
    actor_gain: LaterNonNegative = 0.01  # factor of the initial weights of the last layer, of logits or means
    critic_gain: LaterNonNegative = 0.1  # the same for the value
    # Initial logarithm of the standard deviation of continuous decisions.
    log_std: Annotated[float, Meta(ge=-20.0, le=2.0), Spec(("gymnasium",), later=True)] = 0.0
    # Initial bias of each logit of the op head, before masking. With all 0, an untrained policy is uniform over the
    # valid ops, and PRUNE destroys most seed modules before any reward can favour them (docs/evidence/studies).
    bias_wait: Logit = 0.0
    bias_germinate: Logit = 1.0
    bias_set_alpha_target: Logit = -3.0
    bias_prune: Logit = -3.0
    bias_fossilize: Logit = 0.0
    bias_advance: Logit = 1.0
    normalise_observations: bool = True  # by running moments; else they are used as they are, in growth within 2
    observation_clip: LaterPositive = 10.0  # limit of normalised observations
    frame_stack: Annotated[int, Meta(ge=1, le=LARGEST), Spec(later=True)] = 1  # observations per decision, oldest first


class PPOSettings(_Learner, frozen=True, kw_only=True):
    """The policy update (Schulman et al. 2017, arXiv:1707.06347)."""

    lr: NonNegative = 2e-3  # learning rate; 0: the policy stays as it started
    lr_end: Fraction = 1.0  # fraction of lr at the last planned episode; linear in between
    epochs: PositiveInt = 8  # passes over each rollout
    minibatches: PositiveInt = 2  # of environments with their whole sequences; of steps, if memory is none
    clip: Positive = 0.2  # most that the probability ratio may leave 1
    value_clip: LaterNonNegative = 0.0  # most that a value moves in an update, in the critic's units; 0: no limit
    gamma: Fraction = 0.995  # discount of rewards
    gae_lambda: Fraction = 0.98  # of generalised advantage estimation
    entropy_coef: NonNegative = 0.01  # weight of the entropy bonus at the start
    entropy_coef_end: NonNegative = 0.0  # at the last planned episode; linear in between
    value_coef: NonNegative = 0.5  # weight of the value loss
    max_grad_norm: Positive = 0.5  # of all gradients of an update together
    target_kl: Positive = 0.05  # an update ends at the first minibatch whose mean KL is larger
    # Advantages to mean 0 and SD 1: over the whole rollout, over each minibatch, or not at all.
    normalise_advantages: Annotated[Literal["batch", "minibatch", "none"], Spec(later=True)] = "batch"
    normalise_returns: LaterFlag = True  # the critic learns returns to running mean 0 and SD 1; else in reward units
    reward_scaling: LaterFlag = False  # divides rewards by the running SD of their discounted sum
    reward_clip: LaterNonNegative = 0.0  # limit of rewards, after scaling; 0: none
    adam_eps: LaterPositive = 1e-5  # epsilon of Adam


class GrowthSettings(Settings, frozen=True, kw_only=True):
    """The training of hosts and seed modules, and the blueprints that may be grafted."""

    kinds: ClassVar[tuple[str, ...]] = ("growth",)

    batch_size: PositiveInt = 128  # samples per step of a host
    host_lr: Positive = 0.01  # learning rate of hosts
    seed_lr: Positive = 0.01  # learning rate of seed modules
    momentum: Fraction = 0.9  # of hosts and seed modules
    weight_decay: NonNegative = 5e-4  # host only
    max_grad_norm: Positive = 1.0  # per environment for the host, per module for seed modules
    gates: Literal["permissive", "strict"] = "permissive"  # strict: a stage ends only with improvement and age
    max_seeds: NonNegativeInt = 0  # live and fossilised seed modules per environment; 0: as many as slots
    blueprints: tuple[str, ...] = DEFAULT_BLUEPRINTS  # in the order of the blueprint head
    # Precision of activations in host training; "auto" never appears in a plan.
    amp: Annotated[Literal["off", "bf16", "fp16", "auto"], Spec(flag="amp")] = "off"


class RewardSettings(Settings, frozen=True, kw_only=True):
    """The reward mode and its constants; docs/internals/rewards.md has the formulas."""

    kinds: ClassVar[tuple[str, ...]] = ("growth",)

    # A file of workers/kinds/growth/rewards, or path.py:function, or module:function; in Gymnasium also `env`.
    mode: Annotated[str, Spec((POLICIES,), names="function")] = "shaped"
    # Constants that a user's function for Gymnasium declares.
    params: Annotated[dict[str, bool | int | float | str], Spec(("gymnasium",))] = msgspec.field(default_factory=dict)
    family: Literal["contribution", "loss"] = "contribution"  # what `shaped` rewards: accuracy or loss
    contribution_weight: float = 1.0
    proxy_confidence_factor: float = 0.3
    pbrs_weight: float = 0.3
    epoch_progress_bonus: float = 0.3
    max_progress_bonus: float = 2.0
    rent_weight: float = 0.5
    max_rent: float = 8.0
    base_slot_rent_ratio: float = 0.0039
    alpha_shock_coef: float = 0.1958
    invalid_fossilize_penalty: float = -1.0
    prune_fossilized_penalty: float = -1.0
    germinate_with_seed_penalty: float = -0.3
    germinate_cost: float = -0.02
    fossilize_cost: float = -0.01
    prune_cost: float = -0.005
    set_alpha_target_cost: float = -0.005
    fossilize_base_bonus: float = 0.5
    fossilize_contribution_scale: float = 0.1
    fossilize_noncontributing_penalty: float = -0.2
    prune_hurting_bonus: float = 0.3
    prune_acceptable_bonus: float = 0.1
    prune_good_seed_penalty: float = -0.3
    prune_hurting_threshold: float = -0.5
    improvement_safe_threshold: float = 0.1
    hacking_ratio_threshold: Positive = 5.0
    attribution_sigmoid_steepness: float = 3.0
    terminal_acc_weight: float = 0.05
    fossilize_terminal_scale: float = 3.0
    gamma: float = 0.995
    divergence_penalty: float = -10.0  # under every mode, on the last executed decision of a host that diverged
    disable_pbrs: bool = False
    disable_terminal_reward: bool = False
    disable_anti_gaming: bool = False
    param_budget: Positive = 500_000.0
    param_penalty_weight: float = 0.1
    sparse_reward_scale: float = 1.0
    early_prune_threshold: NonNegativeInt = 5
    early_prune_penalty: float = -0.1
    loss_delta_weight: float = 5.0
    max_loss_delta: float = 5.0
    regression_penalty_scale: float = 0.5
    typical_loss_delta_std: Positive = 0.1
    compute_rent_weight: float = 0.05
    max_rent_penalty: float = 5.0
    grace_epochs: NonNegativeInt = 3
    stage_potential_weight: float = 0.1
    baseline_loss: float = 2.3
    target_loss: float = 0.3
    terminal_loss_weight: float = 1.0


class GymSettings(Settings, frozen=True, kw_only=True):
    """How episodes of a Gymnasium environment form rollouts."""

    kinds: ClassVar[tuple[str, ...]] = ("gymnasium",)

    # episodes: one episode per environment, from a fresh reset to its end or to `steps`. resets: `steps` steps, with a
    # reset at every end and at the start of each rollout. continues: the same, but a rollout continues where the
    # previous one ended.
    rollout: Literal["episodes", "resets", "continues"] = "episodes"
    episode_steps: NonNegativeInt = 0  # limit of an evaluation episode unless rollout is episodes; 0: the environment's


class GroupSettings(Settings, frozen=True, kw_only=True):
    """The settings of one group, requested or resolved.

    On the command line, `reward=` is short for `reward.mode=`, and `controller=` for `controller.name=`.
    """

    controller: ControllerSettings = ControllerSettings()
    policy: PolicySettings = PolicySettings()
    ppo: PPOSettings = PPOSettings()
    growth: GrowthSettings = GrowthSettings()
    reward: RewardSettings = RewardSettings()
    gym: GymSettings = GymSettings()
    # Settings of the user's trainer, by the names of its fields or placeholders; complete once resolved.
    trainer: Annotated[dict[str, TrainerValue], Spec(("trainer",))] = {}

    @property
    def has_policy(self) -> bool:
        """Whether the group's decisions come from a policy, trained or not, rather than from a fixed controller."""
        return self.controller.name == "ppo"

    @property
    def learns(self) -> bool:
        """Whether the group's policy is trained; with a learning rate of 0 it is not."""
        return self.has_policy and self.ppo.lr > 0.0


class ProcessArithmetic(Settings, frozen=True, kw_only=True):
    """The settings of numerical libraries that a worker fixes for its process, and the rules for torch's kernels."""

    threads: Annotated[PositiveInt, Spec(flag="threads")] = 1  # per worker
    precision: Literal["float32"] = "float32"
    deterministic: Annotated[bool, Spec(flag="deterministic")] = True
    conv_kernel: Literal["by_shape"] = "by_shape"  # the rule of workers/kinds/growth/layers/operations.py


class Arithmetic(ProcessArithmetic, frozen=True, kw_only=True):
    """The settings that, together with code and rng seed, determine the bits of a result.

    They are the same for all workers of an experiment.
    """

    kernel: HostKernel = "torch"
    kernel_build: str = ""  # compiler, flags and hash of sources, as in its build record; "" for torch
    hosts: Literal["kernel", "torch"] = "kernel"  # what trains hosts; torch on GPUs, or if the kernel cannot train them

    @property
    def host_kernel(self) -> HostKernel:
        """The kernel that trains hosts, or "torch"."""
        return self.kernel if self.hosts == "kernel" else "torch"
