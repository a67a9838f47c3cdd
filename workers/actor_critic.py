"""The interface of all actor-critic implementations, which map observations to decisions and values, and learn.

    observation -> Linear, LayerNorm, tanh -> LSTM -> LayerNorm -> features; without memory, only the first three
    features                  -> logits of head 0 (the op, by convention)
    features, op              -> logits of head 1 (the slot)
    features, op, slot        -> logits of all other heads
    features                  -> means of a continuous decision, instead of all logits
    features                  -> value, in units of the return normaliser

Choices enter as embeddings added before a group's tanh, so conditioning costs one row look-up per choice. With separate
trunks, the value has features, and a memory, of its own. `Shape` says what replaces tanh, and whether there are layer
norms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32, Ints
from workers.environments import Decisions, Masks

Weights = dict[str, Floats32]  # by the names of torch's state_dict, in its order

CONDITIONING_HEADS = 2


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A network: its sizes, its layers and how its weights start."""

    observation_width: int
    head_sizes: tuple[int, ...] = ()  # choices per head; empty: continuous
    dimensions: int = 0  # of a continuous decision
    hidden: int
    memory: Literal["lstm", "none"] = "lstm"
    activation: Literal["tanh", "relu"] = "tanh"
    layer_norm: bool = True
    trunk: Literal["shared", "separate"] = "shared"  # separate: encoder, LSTM and norms once for the critic alone
    init: Literal["orthogonal", "xavier", "pytorch"] = "orthogonal"
    actor_gain: float = 0.01  # factor of the actor's last layers: starts near uniform over the valid actions
    critic_gain: float = 0.1  # starts near the mean return, which is 0 in normalised units
    log_std: float = 0.0  # of a continuous decision
    first_bias: tuple[float, ...] = ()  # where the logits of head 0 start, one per choice; empty: near uniform

    @property
    def trunks(self) -> int:
        """The number of trunks: the actor's is the first, the critic's the last."""
        return 2 if self.trunk == "separate" else 1

    @property
    def memory_width(self) -> int:
        """Numbers of an environment's h, or of its c: the actor's before the critic's if they are separate."""
        return self.trunks * self.hidden

    @property
    def groups(self) -> tuple[range, ...]:
        """Groups of heads whose logits are computed together, conditioned on all heads of earlier groups."""
        count = len(self.head_sizes)
        groups = (range(min(1, count)), range(1, min(2, count)), range(2, count))
        return tuple(heads for heads in groups if heads)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What an update learns from: B sequences of up to T steps, each array C-contiguous.

    A sequence ends with its last valid step; nothing after it is read.
    """

    observations: Floats32  # [T, B, width], as the policy saw them
    actions: Decisions  # [T, B, heads] int64, or [T, B, dimensions] float64 where they are continuous
    log_probs: Floats  # [T, B], when acting
    values: Floats  # [T, B], when acting, in the critic's present units
    advantages: Floats  # [T, B], normalised
    returns: Floats  # [T, B], in the critic's units
    valid: Bools  # [T, B]; entries that are False have no effect
    masks: Bools | None = None  # [T, B, heads, widest head]; None: every choice is valid
    memory: Floats32 | None = None  # [2, B, memory_width], h and c at the beginning; None: empty


@dataclass(frozen=True, kw_only=True)
class UpdateRule:
    """How a policy learns from a minibatch."""

    clip: float
    value_coef: float
    entropy_coef: float
    max_grad_norm: float
    lr: float
    target_kl: float
    value_clip: float = 0.0  # 0: the value loss is not clipped
    adam_eps: float = 1e-5


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """Measurements of a minibatch before its optimiser step, which `learn` may skip."""

    policy_loss: float
    value_loss: float
    kl: float
    clip_fraction: float
    ratio_max: float
    grad_norm: float | None  # before clipping; None if the KL exceeds its target
    stepped: bool


class Decision(NamedTuple):
    """The decisions of one step, with the values that the update needs."""

    actions: Decisions  # [E, heads] int64, or [E, dimensions] float64 where they are continuous
    masks: Bools | None  # [E, heads, widest head]; None: every choice is valid
    log_probs: Floats  # [E], joint over used heads
    values: Floats  # [E], normalised


class Outputs(NamedTuple):
    """The outputs of the current policy for the N valid steps of a batch."""

    log_probs: Floats  # [N]
    entropies: Floats  # [N, heads or dimensions]
    values: Floats  # [N]


class ActorCritic(ABC):
    """A network with its optimiser, Adam; call `changed` after writing into its arrays."""

    weights: Weights
    means: Weights  # running means of the gradient
    squares: Weights  # and of its square
    steps = 0  # taken by the optimiser

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @abstractmethod
    def decide(
        self, observations: Floats32, memory: Floats32, masks: Masks | None, uniforms: Floats | None
    ) -> Decision:
        """Decide for normalised observations [E, width] by `uniforms` [E, heads] in [0, 1), or greedily if None.

        `memory` [2, E, memory_width] advances by a step, in place. A greedy continuous decision is the mean. A head's
        mask is computed from the choices of all earlier heads; if `masks` is None, every choice is valid.
        """

    @abstractmethod
    def values(self, observations: Floats32, memory: Floats32) -> Floats:
        """Return normalised values [E] of observations [E, width]; `memory` [2, E, hidden] is unchanged."""

    @abstractmethod
    def evaluate(self, batch: Batch) -> Outputs:
        """Apply the network to whole sequences."""

    @abstractmethod
    def learn(self, batch: Batch, sequences: Ints, rule: UpdateRule) -> Learnt:
        """Take one optimiser step on some of the sequences; at least one must contain a valid decision.

        The step is skipped if the KL exceeds its target or the gradient is not finite. Clipped surrogate (Schulman et
        al. 2017, arXiv:1707.06347, equation 7) on the ratio of joint probabilities and on the batch's advantages; value
        loss on its returns; entropy bonus per decision. KL estimate: Schulman, "Approximating KL divergence", 2020.

        With a value clip, the value loss of a step is half the larger of two squared errors: that of the value, and
        that of the value when acting plus the difference to it, clipped (ppo2 of OpenAI's baselines, not in the paper).
        """

    def changed(self) -> None:  # noqa: B027  nothing to do if computing uses the arrays themselves
        """Signal that the arrays have been written to."""

    def initial_memory(self, n_envs: int) -> Floats32:
        """Return the empty memory of new episodes, [2, n_envs, memory_width]: h and c of the LSTM."""
        return np.zeros((2, n_envs, self.shape.memory_width), dtype=np.float32)

    def rescale_values(self, scale: float, shift: float) -> None:
        """Rescale every value v to v * scale + shift, so that outputs keep their meaning when the normaliser changes.

        This is the output-preserving half of Pop-Art (van Hasselt et al. 2016, arXiv:1602.07714).
        """
        weight = self.weights["value_out.weight"]
        bias = self.weights["value_out.bias"]
        weight *= scale
        bias *= scale
        bias += shift
        self.changed()

    def state(self) -> dict[str, Any]:
        """Return copies of the weights and of the optimiser's state, laid out as in torch's state_dicts."""
        moments = zip(self.means.values(), self.squares.values(), strict=True)
        step = np.array(self.steps, dtype=np.float32)
        return {
            "policy": {name: weight.copy() for name, weight in self.weights.items()},
            "optimiser": {
                "state": {
                    place: {"step": step, "exp_avg": mean.copy(), "exp_avg_sq": square.copy()}
                    for place, (mean, square) in enumerate(moments)
                }
            },
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the result of `state`; LookupError or ValueError if `state` belongs to a different network."""
        if state["policy"].keys() != self.weights.keys():
            raise LookupError(f"weights of {len(state['policy'])} names for {len(self.weights)}")
        for place, name in enumerate(self.weights):
            moments = state["optimiser"]["state"][place]
            _fill(self.weights[name], state["policy"][name])
            _fill(self.means[name], moments["exp_avg"])
            _fill(self.squares[name], moments["exp_avg_sq"])
            self.steps = int(moments["step"])
        self.changed()


def _fill(target: Floats32, source: NDArray[Any]) -> None:
    """Copy into `target` without broadcasting; ValueError if the shapes differ."""
    if source.shape != target.shape:
        raise ValueError(f"weights of shape {tuple(source.shape)}, expected {target.shape}")
    target[...] = source
