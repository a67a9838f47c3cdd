"""Policies of the C++ library, torch policies in float64 with the same weights, and batches for both."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from esper_ab.contracts.rng import RngPath
from support.kernels.compiler import IN_CI
from workers.actor_critic import Batch, Shape, UpdateRule
from workers.native import library
from workers.native.policy import NativePolicy
from workers.ppo.torch_policy import TorchPolicy

BUILT = [kernel.name for kernel in library.kernels() if not kernel.problem]
needs_library = pytest.mark.skipif(not BUILT and not IN_CI, reason="the kernel was not built here")
RULE = UpdateRule(clip=0.2, value_coef=0.5, entropy_coef=0.01, max_grad_norm=0.5, lr=1e-3, target_kl=1e9)


class WidePolicy(TorchPolicy):
    """The torch policy with observations, weights and results in float64."""

    kink_distance = np.inf  # smallest input of a ReLU, without its sign: rounding may decide at the kink

    def __init__(self, shape: Shape, rng: RngPath) -> None:
        super().__init__(shape, rng)
        if shape.activation == "relu":
            self._activation = self._watched_relu
        self._tensors = {name: tensor.detach().double().requires_grad_() for name, tensor in self._tensors.items()}
        self.weights = {name: tensor.detach().numpy() for name, tensor in self._tensors.items()}
        self.means = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        self.squares = {name: np.zeros_like(weight) for name, weight in self.weights.items()}

    def initial_memory(self, n_envs: int) -> np.ndarray:
        return super().initial_memory(n_envs).astype(np.float64)

    def _watched_relu(self, x: torch.Tensor) -> torch.Tensor:
        self.kink_distance = min(self.kink_distance, float(x.detach().abs().min()))
        return torch.relu(x)


@dataclass(frozen=True)
class Case:
    """A network and a batch of sequences."""

    shape: Shape
    steps: int
    sequences: int
    memory: bool
    ragged: bool
    masked: bool
    key: int


@st.composite
def cases(draw: st.DrawFn, least_hidden: int = 1) -> Case:
    """Draw a network of any kind, with widths below, at and above a multiple of the vector length."""
    heads = draw(st.lists(st.integers(1, 9), min_size=0, max_size=6).map(tuple))
    shape = Shape(
        observation_width=draw(st.integers(1, 70)),
        hidden=draw(st.integers(least_hidden, 70)),
        head_sizes=heads,
        dimensions=0 if heads else draw(st.integers(1, 20)),
        memory=draw(st.sampled_from(["none", "lstm"])),
        activation=draw(st.sampled_from(["tanh", "relu"])),
        layer_norm=draw(st.booleans()),
        trunk=draw(st.sampled_from(["shared", "separate"])),
    )
    return Case(
        shape,
        draw(st.integers(1, 12)),
        draw(st.integers(1, 12)),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.integers(0, 2**20)),
    )


def networks(shape: Shape, key: int, loaded_library: ctypes.CDLL | None = None) -> tuple[WidePolicy, NativePolicy]:
    """Return both policies with the same random weights, far from the symmetric weights of a new network."""
    wide_policy = WidePolicy(shape, RngPath(key))
    policy = NativePolicy(shape, RngPath(key), loaded_library or library.load(BUILT[0]))
    rng = np.random.default_rng(key)
    for weight in wide_policy.weights.values():
        noise = rng.standard_normal(weight.shape) / np.sqrt(weight.shape[-1] + 10)
        weight[...] = (weight + noise).astype(np.float32)
    write(wide_policy, policy)
    return wide_policy, policy


class Fixed:
    """Masks [B, heads, widest head] that depend on no choice."""

    def __init__(self, masks: np.ndarray, shape: Shape) -> None:
        self._masks = masks
        self._sizes = shape.head_sizes

    def mask(self, head: int, choices: np.ndarray) -> np.ndarray:
        return self._masks[:, head, : self._sizes[head]]


def write(wide_policy: WidePolicy, policy: NativePolicy) -> None:
    """Copy the weights of the torch policy into the native one."""
    for name, weight in wide_policy.weights.items():
        policy.weights[name][...] = weight
    policy.changed()


def batch_of(case: Case) -> Batch:
    """Return a batch of random numbers; some heads are unused, and observations after the end are zero."""
    rng = np.random.default_rng(case.key)
    sizes = case.shape
    shape = (case.steps, case.sequences)
    lengths = rng.integers(0, case.steps + 1, case.sequences) if case.ragged else np.full(case.sequences, case.steps)
    lengths[0] = case.steps
    valid = np.arange(case.steps)[:, None] < lengths
    masks = None
    actions = rng.standard_normal((*shape, sizes.dimensions)) / 2
    if sizes.head_sizes:
        fits = np.arange(max(sizes.head_sizes)) < np.array(sizes.head_sizes)[:, None]
        masks = fits & (rng.random((*shape, *fits.shape)) < (0.6 if case.masked else 1.0))
        scores = np.where(masks, rng.random(masks.shape), -1.0)
        actions = np.where(masks.any(-1), scores.argmax(-1), 0)
    memory = rng.standard_normal((2, case.sequences, sizes.memory_width)).astype(np.float32) / 2
    log_probs, advantages, returns = rng.standard_normal((3, *shape))
    return Batch(
        observations=rng.standard_normal((*shape, sizes.observation_width)).astype(np.float32) * valid[..., None],
        actions=actions,
        masks=masks if case.masked else None,
        log_probs=log_probs,
        advantages=advantages,
        returns=returns,
        valid=valid,
        values=np.zeros(shape),
        memory=memory if case.memory and sizes.memory == "lstm" else None,
    )


def near_policy(batch: Batch, policy: NativePolicy, key: int) -> Batch:
    """Return the batch with log-probabilities and values near those of the policy, as in an update."""
    near_numbers = np.zeros((2, *batch.valid.shape))
    outputs = policy.evaluate(batch)
    near_numbers[:, batch.valid] = outputs.log_probs, outputs.values
    log_probs, values = near_numbers + 0.2 * np.random.default_rng(key).standard_normal(near_numbers.shape)
    return replace(batch, log_probs=log_probs, values=values)
