"""The actor-critic by the kernel in C++ (workers/native/policy.py), behind the interface that agents know."""

from __future__ import annotations

import ctypes

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats, Floats32, Ints, all_false
from workers.environments import Masks
from workers.native import policy as native
from workers.native.policy import Learnt, UpdateRule
from workers.ppo.policy import ActorCritic, Batch, Decision, Outputs, Shape, initial_weights


class KernelPolicy(ActorCritic):
    """A policy that `library` computes; initial weights are a pure function of `rng` and the sizes."""

    def __init__(self, shape: Shape, rng: RngPath, library: ctypes.CDLL) -> None:
        super().__init__(shape)
        self._inner = native.NativePolicy(library, native.Sizes(
            width=shape.observation_width, hidden=shape.hidden, head_sizes=shape.head_sizes,
            dimensions=shape.dimensions, lstm=shape.memory == "lstm",
        ))  # fmt: skip
        self.weights, self.means, self.squares = self._inner.parameters, self._inner.adam.mean, self._inner.adam.square
        widest = max(shape.head_sizes, default=0)
        self._valid = len(shape.head_sizes) or shape.dimensions, widest  # of masks, but for environments
        for name, weight in initial_weights(shape, rng).items():
            self.weights[name][...] = weight
        self.changed()

    @property
    def steps(self) -> int:
        """Taken by the optimiser."""
        return self._inner.adam.step

    @steps.setter
    def steps(self, steps: int) -> None:
        self._inner.adam.step = steps

    def changed(self) -> None:
        """Have the kernel read the weights again."""
        self._inner.changed()

    def decide(self, seen: Floats32, memory: Floats32, masks: Masks, uniforms: Floats | None) -> Decision:
        """Decide as `ActorCritic` says."""
        valid = all_false((len(seen), *self._valid))
        source = None if self.shape.dimensions else masks
        actions, log_probs, values = self._inner.step(seen, memory[0], memory[1], valid, uniforms, source)
        return Decision(actions, valid, log_probs, values)

    def values(self, seen: Floats32, memory: Floats32) -> Floats:
        """Return normalised values as `ActorCritic` says."""
        return self._inner.values(seen, memory[0], memory[1])

    def evaluate(self, batch: Batch) -> Outputs:
        """Apply the network as `ActorCritic` says."""
        return Outputs(*self._inner.evaluate(batch))

    def learn(self, batch: Batch, sequences: Ints, rule: UpdateRule) -> Learnt:
        """Take one step as `ActorCritic` says."""
        return self._inner.learn(batch, sequences, rule)
