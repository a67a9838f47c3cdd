"""The policy in C++, called with ctypes through src/policy_api.h.

It is the network of `workers.actor_critic.ActorCritic`, with the PPO update.

    policy = NativePolicy(Shape(observation_width=4, hidden=64, head_sizes=(2,)), RngPath(0), library)
    policy.weights["value_out.bias"][:] = 0.0; policy.changed()
    decision = policy.decide(seen, policy.initial_memory(len(seen)), masks, uniforms)
    learnt = policy.learn(batch, sequences, rule)

Weights, and Adam's running means, have the names, shapes and order of torch's `state_dict`. Numbers that the torch
implementation computes in float64 (log-probabilities, ratios, losses) are float64 here. A call releases the GIL; only
one thread at a time may use a policy.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import ActorCritic, Batch, Decision, Learnt, Outputs, Shape, UpdateRule
from workers.arrays import Bools, Floats, Floats32, Ints, all_false
from workers.environments import Masks
from workers.initial_weights import initial_weights
from workers.native.binding import Int, Long, Pointer

Double = ctypes.c_double
_NO_MEMORY = 1
_STATUS = {_NO_MEMORY: "no memory", 3: "sizes, places or an order of calls that do not fit"}  # EsperStatus
_STEPPED, _BEYOND_KL, _NOT_FINITE = range(3)  # EsperPolicyEnd
_UNIT = 16  # floats; memory is padded to multiples of it


def _struct(*parts: tuple[str, type]) -> type[ctypes.Structure]:
    """Return a struct with these fields, given as names with their common type."""
    fields = list[tuple[str, type]]()
    for names, kind in parts:
        fields += [(name, kind) for name in names.split()]
    return type("Struct", (ctypes.Structure,), {"_fields_": fields})


# The structs of src/policy_api.h, in the same order.
_Sizes = _struct(("width hidden lstm trunks norms relu dimensions n_heads", Int), ("sizes", ctypes.POINTER(Int)))
_Memory = _struct(("values mean square", Pointer), ("count", Long))
_Step = _struct(("rows", Long), ("seen memory uniforms actions log_probs values", Pointer))
_Arrays = _struct(
    ("steps sequences", Long), ("observations actions masks log_probs values advantages returns valid memory", Pointer)
)
_Rule = _struct(("clip value_clip value_coef entropy_coef target_kl max_grad_norm lr adam_eps", Double))
_NUMBERS = "policy_loss value_loss kl clip_fraction ratio_max grad_norm"
_Learnt = _struct((_NUMBERS, Double), ("end", Int))


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    structs = (_Sizes, _Memory, _Step, _Arrays, _Rule, _Learnt)
    sizes = (Int * len(structs))()
    library.esper_policy_layout(sizes)
    if list(sizes) != [ctypes.sizeof(struct) for struct in structs]:
        raise ValueError(f"the policy's structs have {list(sizes)} bytes")
    step, arrays = map(ctypes.POINTER, (_Step, _Arrays))
    library.esper_policy_close.restype = library.esper_policy_changed.restype = None
    library.esper_policy_close.argtypes = library.esper_policy_changed.argtypes = [Pointer]
    library.esper_policy_step.argtypes = [Pointer, step, Int]
    library.esper_policy_choose.argtypes = [Pointer, step, Int, Int, Pointer]
    library.esper_policy_evaluate.argtypes = [Pointer, arrays, Pointer, Pointer, Pointer]
    library.esper_policy_learn.argtypes = [
        Pointer,
        arrays,
        Pointer,
        Long,
        ctypes.POINTER(_Rule),
        Long,
        ctypes.POINTER(_Learnt),
    ]
    return library


def _checked(status: int) -> None:
    if status:
        message = f"the policy refuses: {_STATUS[status]}"
        raise MemoryError(message) if status == _NO_MEMORY else ValueError(message)


_FLOAT, _DOUBLE, _INT, _BOOL = map(np.dtype, (np.float32, np.float64, np.int64, np.bool_))


def _address(array: NDArray[Any], kind: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Return the address of an array; ValueError unless it is contiguous and has this type and shape."""
    if array.dtype != kind or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(f"an array {array.dtype} {array.shape}, not {kind} {shape} in one piece")
    return array.ctypes.data


def _copy(array: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy without broadcasting; ValueError if the shapes differ."""
    if array.shape != target.shape:
        raise ValueError(f"the policy refuses an array {array.shape}, not {target.shape}")
    target[...] = array


class NativePolicy(ActorCritic):
    """A policy that `library` computes; initial weights are a pure function of `rng` and the sizes.

    Raises ValueError for arrays of the wrong type, shape or layout, and for sizes and actions that are impossible.
    """

    def __init__(self, shape: Shape, rng: RngPath, library: ctypes.CDLL) -> None:
        super().__init__(shape)
        self._library = _declared(library)
        self._handle = Pointer()
        initial_values = initial_weights(shape, rng)
        ends = np.cumsum([weight.size for weight in initial_values.values()])
        # Kept alive for the library, which writes to it: weights, and Adam's running means.
        self._flat = np.zeros((3, -(-int(ends[-1]) // _UNIT) * _UNIT), dtype=np.float32)
        self.weights = {}
        self.means = {}
        self.squares = {}
        for (name, weight), end in zip(initial_values.items(), ends.tolist(), strict=True):
            own_columns = slice(end - weight.size, end)
            self.weights[name], self.means[name], self.squares[name] = (
                flat_array[own_columns].reshape(weight.shape) for flat_array in self._flat
            )
        head_sizes = (Int * len(shape.head_sizes))(*shape.head_sizes)
        sizes = _Sizes(
            shape.observation_width,
            shape.hidden,
            shape.memory == "lstm",
            shape.trunks,
            shape.layer_norm,
            shape.activation == "relu",
            shape.dimensions,
            len(head_sizes),
            head_sizes,
        )
        memory = _Memory(*(flat_array.ctypes.data for flat_array in self._flat), ends[-1])
        status = library.esper_policy_open(ctypes.byref(sizes), ctypes.byref(memory), ctypes.byref(self._handle))
        _checked(status)
        for name, weight in initial_values.items():
            self.weights[name][...] = weight
        self.changed()
        self._decisions = len(shape.head_sizes) or shape.dimensions
        self._kind = _INT if shape.head_sizes else _DOUBLE  # of actions
        self._widest = max(shape.head_sizes, default=0)
        self._step = _Step(rows=-1)  # none yet
        self._given = _Arrays()  # pointers to a batch's arrays; the batch may be large, so it is held weakly
        self._given_of: Callable[[], Batch | None] = lambda: None

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.esper_policy_close(self._handle)

    def changed(self) -> None:
        """Have the library read the weights again."""
        self._library.esper_policy_changed(self._handle)

    def decide(
        self, observations: Floats32, memory: Floats32, masks: Masks | None, uniforms: Floats | None
    ) -> Decision:
        """Decide as `ActorCritic` says."""
        self._forward(observations, memory, advance=True)
        self._step.uniforms = None if uniforms is None else self._uniforms_at
        if uniforms is not None:
            _copy(uniforms, self._uniforms)
        valid_masks = None
        if masks is None or self.shape.dimensions:
            _checked(self._library.esper_policy_choose(self._handle, self._step, 0, self._decisions, None))
        else:
            valid_masks = all_false((*self._actions.shape, self._widest))
            for head, size in enumerate(self.shape.head_sizes):
                valid_masks[:, head, :size] = masks.mask(head, self._actions[:, :head])
                _checked(self._library.esper_policy_choose(self._handle, self._step, head, 1, valid_masks.ctypes.data))
        return Decision(self._actions.copy(), valid_masks, self._log_probs.copy(), self._values.copy())

    def values(self, observations: Floats32, memory: Floats32) -> Floats:
        """Return normalised values as `ActorCritic` says."""
        self._forward(observations, memory, advance=False)
        return self._values.copy()

    def evaluate(self, batch: Batch) -> Outputs:
        """Apply the network as `ActorCritic` says."""
        batch_struct = self._places(batch)
        count = int(np.count_nonzero(batch.valid))
        outputs = Outputs(np.empty(count), np.empty((count, self._decisions)), np.empty(count))
        _checked(
            self._library.esper_policy_evaluate(self._handle, batch_struct, *(part.ctypes.data for part in outputs))
        )
        return outputs

    def learn(self, batch: Batch, sequences: Ints, rule: UpdateRule) -> Learnt:
        """Take one step as `ActorCritic` says."""
        batch_struct = self._places(batch)
        learnt_struct = _Learnt()
        count = len(sequences)
        sequence_address = _address(sequences, _INT, (count,))
        rule_struct = _Rule(**vars(rule))
        _checked(
            self._library.esper_policy_learn(
                self._handle, batch_struct, sequence_address, count, rule_struct, self.steps, learnt_struct
            )
        )
        numbers = {name: getattr(learnt_struct, name) for name in _NUMBERS.split()}
        self.steps += learnt_struct.end == _STEPPED
        if learnt_struct.end == _BEYOND_KL:
            numbers["grad_norm"] = None
        return Learnt(**numbers, stepped=learnt_struct.end == _STEPPED)

    def _forward(self, observations: Floats32, memory: Floats32, advance: bool) -> None:
        """Compute features and values of `observations`, and, if `advance`, the memory after them."""
        if len(observations) != self._step.rows:
            self._fit(len(observations))
        _copy(observations, self._seen)
        if self.shape.memory == "lstm":
            self._step.memory = _address(memory, _FLOAT, (2, len(observations), self.shape.memory_width))
            if advance and not memory.flags.writeable:
                raise ValueError("the memory cannot be written")
        _checked(self._library.esper_policy_step(self._handle, self._step, advance))

    def _fit(self, rows: int) -> None:
        """Allocate inputs and outputs for `rows` environments, for reuse: asking numpy for an address takes 1 us."""
        shape = (rows, self._decisions)
        width = self.shape.observation_width
        self._seen = np.empty((rows, width), dtype=np.float32)
        self._uniforms = np.empty(shape)
        self._actions: NDArray[Any] = np.empty(shape, dtype=self._kind)
        self._log_probs, self._values = np.empty((2, rows))
        outputs = (array.ctypes.data for array in (self._actions, self._log_probs, self._values))
        self._step = _Step(rows, self._seen.ctypes.data, None, None, *outputs)
        self._uniforms_at = self._uniforms.ctypes.data

    def _places(self, batch: Batch) -> ctypes.Structure:
        """Check the arrays of `batch`; return their addresses."""
        if batch is self._given_of():
            return self._given
        shape = batch.valid.shape
        parts = (batch.log_probs, batch.values, batch.advantages, batch.returns)
        numbers = (_address(array, _DOUBLE, shape) for array in parts)
        masks_at = memory_at = None
        if batch.masks is not None:
            masks_at = _address(batch.masks, _BOOL, (*shape, self._decisions, self._widest))
        if batch.memory is not None:
            memory_at = _address(batch.memory, _FLOAT, (2, shape[1], self.shape.memory_width))
        self._given = _Arrays(
            *shape,
            _address(batch.observations, _FLOAT, (*shape, self.shape.observation_width)),
            _address(batch.actions, self._kind, (*shape, self._decisions)),
            masks_at,
            *numbers,
            _address(batch.valid, _BOOL, shape),
            memory_at,
        )
        self._given_of = weakref.ref(batch)
        return self._given


def known_answer(library: ctypes.CDLL) -> str:
    """Return the sha256 of decisions, evaluations and updates of small policies of every kind, on fixed numbers."""
    sha = hashlib.sha256()
    for shape in _ANSWERING:
        policy = NativePolicy(shape, RngPath(0), library)
        size = (_ANSWERED_STEPS, _ANSWERED_SEQUENCES)
        policy._flat[0] = _numbers(policy._flat.shape[1:])
        policy.changed()
        observations = _numbers((*size, shape.observation_width), 3.0)
        memory = _numbers((2, size[1], shape.memory_width))
        masks = _numbers((*size, policy._decisions, policy._widest)) < 0.2
        uniforms = _numbers((size[1], policy._decisions)).astype(np.float64) + 0.5
        source = None if shape.dimensions else _Fixed(masks[0], shape.head_sizes)
        actions = np.stack([policy.decide(rows, memory, source, uniforms).actions for rows in observations])
        log_probs, advantages, returns = _numbers((3, *size), 2.0).astype(np.float64)
        batch = Batch(
            observations=observations,
            actions=actions,
            masks=masks if shape.head_sizes else None,
            log_probs=log_probs,
            values=advantages,
            advantages=advantages,
            returns=returns,
            valid=np.arange(size[0])[:, None] < np.arange(1, size[1] + 1),
            memory=memory if shape.memory == "lstm" else None,
        )
        learning_steps = [policy.learn(batch, np.arange(size[1]), _ANSWERING_RULE) for _ in range(2)]
        for array in (actions, *memory, *policy.evaluate(batch), policy._flat):
            sha.update(array.tobytes())
        sha.update(repr(learning_steps).encode())
    return sha.hexdigest()


class _Fixed:
    """Masks that depend on no choice."""

    def __init__(self, masks: Bools, sizes: tuple[int, ...]) -> None:
        self._masks = masks
        self._sizes = sizes

    def mask(self, head: int, choices: Ints) -> Bools:
        return self._masks[:, head, : self._sizes[head]]


_ANSWERED_STEPS = 9
_ANSWERED_SEQUENCES = 7
_ANSWERING = (
    Shape(observation_width=5, hidden=19, head_sizes=(3, 2, 4, 2)),
    Shape(observation_width=18, hidden=33, dimensions=3, memory="none"),
    Shape(observation_width=7, hidden=21, head_sizes=(3, 4), activation="relu", layer_norm=False, trunk="separate"),
)
# All numbers differ, so that the answer changes if the binding exchanges two of them.
_ANSWERING_RULE = UpdateRule(
    clip=0.2,
    value_clip=0.3,
    value_coef=0.6,
    entropy_coef=0.01,
    max_grad_norm=0.5,
    lr=1e-2,
    adam_eps=1e-4,
    target_kl=math.inf,
)


def _numbers(shape: tuple[int, ...], scale: float = 1.0) -> Floats32:
    """Return numbers in [-scale / 2, scale / 2), the same on every machine."""
    remainders = np.arange(1, math.prod(shape) + 1, dtype=np.int64) * 40503 % 65536
    return ((remainders / 65536 - 0.5) * scale).astype(np.float32).reshape(shape)
