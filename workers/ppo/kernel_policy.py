"""The actor-critic computed by the C++ kernel (workers/native/policy.py), with the interface that agents use."""

from __future__ import annotations

import ctypes

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats, Floats32, Ints, all_false
from workers.environments import Masks
from workers.native import policy as native
from workers.native.policy import Learnt, UpdateRule
from workers.ppo.policy import ActorCritic, Batch, Decision, Outputs, Shape, initial_weights


class KernelPolicy(ActorCritic):
    """A policy computed by `library`; its initial weights depend only on `rng` and the sizes."""

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
        """The number of steps taken by the optimiser."""
        return self._inner.adam.step

    @steps.setter
    def steps(self, steps: int) -> None:
        self._inner.adam.step = steps

    def changed(self) -> None:
        """Make the kernel read the weights again."""
        self._inner.changed()

    def decide(self, seen: Floats32, memory: Floats32, masks: Masks, uniforms: Floats | None) -> Decision:
        """Implement `ActorCritic.decide`."""
        valid = all_false((len(seen), *self._valid))
        source = None if self.shape.dimensions else masks
        actions, log_probs, values = self._inner.step(seen, memory[0], memory[1], valid, uniforms, source)
        return Decision(actions, valid, log_probs, values)

    def values(self, seen: Floats32, memory: Floats32) -> Floats:
        """Implement `ActorCritic.values`."""
        return self._inner.values(seen, memory[0], memory[1])

    def evaluate(self, batch: Batch) -> Outputs:
        """Implement `ActorCritic.evaluate`."""
        return Outputs(*self._inner.evaluate(batch))

    def learn(self, batch: Batch, sequences: Ints, rule: UpdateRule) -> Learnt:
        """Implement `ActorCritic.learn`."""
        return self._inner.learn(batch, sequences, rule)
