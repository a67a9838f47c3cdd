"""The policy in C++, called with ctypes through src/policy_api.h.

It is the network of `workers.ppo.policy.ActorCritic`, with its PPO update.

    policy = NativePolicy(library, Sizes(width=4, hidden=64, head_sizes=(2,), dimensions=0, lstm=False))
    policy.parameters["value_out.bias"][:] = 0.0; policy.changed()
    actions, log_probs, values = policy.step(seen, h, c, masks, uniforms)
    learnt = policy.learn(arrays, sequences, rule)

Parameters, and Adam's running means, have the names, shapes and order of torch's `state_dict`. Numbers that the torch
implementation computes in float64 (log-probabilities, ratios, losses) are float64 here. A call releases the GIL; only
one thread at a time may use a policy. If the mask of a later head depends on earlier choices, pass the `Masks` as
`source`: `step` then fills `masks` head by head. Without `source`, `masks` is only read; None means that every choice
is valid.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32, Ints
from workers.environments import Decisions, Masks
from workers.native.binding import Int, Long, Pointer

Double, _Byte = ctypes.c_double, ctypes.c_char
_STATUS = {1: "no memory", 3: "sizes, places or an order of calls that do not fit"}  # EsperStatus
_STEPPED, _BEYOND_KL, _NOT_FINITE = range(3)  # EsperPolicyEnd
_CONDITIONING_HEADS = 2
_GATES = 4
_UNIT = 16  # floats: what memory is padded to


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a network, which has either heads or the dimensions of a continuous decision."""

    width: int  # of an observation
    hidden: int
    head_sizes: tuple[int, ...] = ()  # choices per head
    dimensions: int = 0
    lstm: bool


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """B sequences of up to T steps, C-contiguous.

    A sequence ends with its last valid step; later steps are not read.
    """

    observations: Floats32  # [T, B, width]
    actions: Decisions  # [T, B, heads] int64, or [T, B, dimensions] float64
    masks: Bools | None  # [T, B, heads, widest head]; None: every choice is valid
    log_probs: Floats  # [T, B], when acting
    advantages: Floats  # [T, B], normalised
    returns: Floats  # [T, B], in the critic's units
    valid: Bools  # [T, B]; other entries count for nothing
    memory: Floats32 | None = None  # [2, B, hidden], h and c at the beginning; None: empty


@dataclass(frozen=True, kw_only=True)
class UpdateRule:
    """The coefficients and limits of one PPO step."""

    clip: float
    value_coef: float
    entropy_coef: float
    max_grad_norm: float
    lr: float
    target_kl: float


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """Statistics of a minibatch before its step.

    No step is taken beyond the target KL or if the gradient is not finite.
    """

    policy_loss: float
    value_loss: float
    kl: float
    clip_fraction: float
    ratio_max: float
    grad_norm: float | None  # before clipping; None beyond the target KL
    stepped: bool


@dataclass
class AdamState:
    """Adam's running means of the gradients and of their squares, by parameter, and its number of steps."""

    mean: dict[str, Floats32]
    square: dict[str, Floats32]
    step: int = 0


class _Sizes(ctypes.Structure):
    """The struct EsperPolicySizes."""

    _fields_ = [
        *((name, Int) for name in ("width", "hidden", "lstm", "dimensions", "n_heads")), ("sizes", ctypes.POINTER(Int)),
    ]  # fmt: skip


class _PolicyMemory(ctypes.Structure):
    """The struct EsperPolicyMemory."""

    _fields_ = [("values", Pointer), ("mean", Pointer), ("square", Pointer), ("count", Long)]


class _Arrays(ctypes.Structure):
    """The struct EsperPolicyArrays."""

    _fields_ = [
        ("steps", Long), ("sequences", Long), *((name, Pointer) for name in (
            "observations", "actions", "masks", "log_probs", "advantages", "returns", "valid", "memory")),
    ]  # fmt: skip


class _Rule(ctypes.Structure):
    """The struct EsperPolicyRule."""

    _fields_ = [
        (name, Double) for name in ("clip", "value_coef", "entropy_coef", "target_kl", "max_grad_norm", "lr")
    ]


_NUMBERS = ("policy_loss", "value_loss", "kl", "clip_fraction", "ratio_max", "grad_norm")


class _Learnt(ctypes.Structure):
    """The struct EsperPolicyLearnt."""

    _fields_ = [*((name, Double) for name in _NUMBERS), ("end", Int)]


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of all parameters, in the order of torch's `ActorCritic.state_dict`."""
    hidden, count = sizes.hidden, len(sizes.head_sizes)
    found: dict[str, tuple[int, ...]] = {}

    def linear(name: str, inputs: int, outputs: int) -> None:
        found.update({f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)})

    linear("encoder.0", sizes.width, hidden)
    found |= {"encoder.1.weight": (hidden,), "encoder.1.bias": (hidden,)}
    if sizes.lstm:
        found |= {f"lstm.weight_{of}_l0": (_GATES * hidden, hidden) for of in ("ih", "hh")}
        found |= {f"lstm.bias_{of}_l0": (_GATES * hidden,) for of in ("ih", "hh")}
        found |= {"norm.weight": (hidden,), "norm.bias": (hidden,)}
    groups = [heads for heads in (range(0, 1), range(1, min(2, count)), range(2, count)) if count and len(heads)]
    for i, heads in enumerate(groups):
        linear(f"actor.{i}.inner", hidden, hidden)
        for head in range(min(heads.start, _CONDITIONING_HEADS)):
            found[f"actor.{i}.choices.{head}.weight"] = (sizes.head_sizes[head], hidden)
        linear(f"actor.{i}.logits", hidden, sum(sizes.head_sizes[head] for head in heads))
    if not groups:
        found["actor.0.log_std"] = (sizes.dimensions,)
        linear("actor.0.inner", hidden, hidden)
        linear("actor.0.means", hidden, sizes.dimensions)
    linear("critic.0", hidden, hidden)
    linear("value_out", hidden, 1)
    return found


def _views(flat: Floats32, of: dict[str, tuple[int, ...]]) -> dict[str, Floats32]:
    ends = np.cumsum([math.prod(shape) for shape in of.values()])
    return {
        name: flat[end - math.prod(shape) : end].reshape(shape)
        for (name, shape), end in zip(of.items(), ends, strict=True)
    }


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    structs = (_Sizes, _PolicyMemory, _Arrays, _Rule, _Learnt)
    found = (Int * len(structs))()
    library.esper_policy_layout(found)
    if list(found) != [ctypes.sizeof(struct) for struct in structs]:
        raise ValueError(f"the policy's structs have {list(found)} bytes")
    library.esper_policy_close.restype = library.esper_policy_changed.restype = None
    library.esper_policy_close.argtypes = library.esper_policy_changed.argtypes = [Pointer]
    library.esper_policy_step.argtypes = [Pointer, Long, Pointer, Pointer, Pointer, Int, Pointer]
    library.esper_policy_choose.argtypes = [Pointer, Int, Int, Pointer, Pointer, Pointer, Pointer]
    library.esper_policy_evaluate.argtypes = [Pointer, ctypes.POINTER(_Arrays), Pointer, Pointer, Pointer]
    library.esper_policy_learn.argtypes = [
        Pointer, ctypes.POINTER(_Arrays), Pointer, Long, ctypes.POINTER(_Rule), Long, ctypes.POINTER(_Learnt)
    ]  # fmt: skip
    return library


def _checked(status: int) -> None:
    if status:
        raise (MemoryError if status == 1 else ValueError)(f"the policy refuses: {_STATUS[status]}")


_FLOAT, _DOUBLE, _INT, _BOOL = map(np.dtype, (np.float32, np.float64, np.int64, np.bool_))


def _at(array: NDArray[Any], kind: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Return the address of an array; ValueError unless it is contiguous and has this type and shape."""
    if array.dtype != kind or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(f"an array {array.dtype} {array.shape}, not {kind} {shape} in one piece")
    return _address(array)


def _address(array: NDArray[Any]) -> int:
    """Return the address of a contiguous array; `array.ctypes.data` takes 1 us, a tenth of a step."""
    if not array.flags.writeable:
        return array.ctypes.data
    return ctypes.addressof(_Byte.from_buffer(array))  # type: ignore[arg-type]  # it is a buffer


class NativePolicy:
    """A policy, its parameters and its optimiser; call `changed` after writing to `parameters`.

    Raises ValueError for arrays of another type, shape or layout, and for impossible sizes and actions.
    """

    def __init__(self, library: ctypes.CDLL, sizes: Sizes) -> None:
        self.sizes = sizes
        self._library = _declared(library)
        self._handle = Pointer()
        named = shapes(sizes)
        count = sum(map(math.prod, named.values()))
        # Kept alive for the library, which writes to it.
        self._flat = np.zeros((3, -(-count // _UNIT) * _UNIT), dtype=np.float32)
        self.parameters, mean, square = (_views(flat, named) for flat in self._flat)
        self.adam = AdamState(mean, square)
        self._decisions = len(sizes.head_sizes) or sizes.dimensions
        self._widest = max(sizes.head_sizes, default=0)
        heads = (Int * len(sizes.head_sizes))(*sizes.head_sizes)
        shape = _Sizes(sizes.width, sizes.hidden, sizes.lstm, sizes.dimensions, len(heads), heads)
        memory = _PolicyMemory(*(flat.ctypes.data for flat in self._flat), count)
        _checked(library.esper_policy_open(ctypes.byref(shape), ctypes.byref(memory), ctypes.byref(self._handle)))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.esper_policy_close(self._handle)

    def changed(self) -> None:
        """Tell the library that `parameters` have been written to."""
        self._library.esper_policy_changed(self._handle)

    def step(
        self, seen: Floats32, h: Floats32, c: Floats32, masks: Bools | None, uniforms: Floats | None,
        source: Masks | None = None,
    ) -> tuple[Decisions, Floats, Floats]:
        """Return actions [B, heads] int64 or [B, dimensions] float64, log-probs [B] and values [B] for seen [B, width].

        h and c [B, hidden] advance in place; they are ignored without an LSTM. masks [B, heads, widest head]. uniforms
        [B, heads or dimensions] in [0, 1); None means greedy. If `source` is given, its masks are written to `masks`.
        """
        values = self._forward(seen, h, c, keep=True)
        rows, decisions = len(values), self._decisions
        shape = rows, decisions
        discrete = bool(self.sizes.head_sizes)
        actions: NDArray[Any] = np.zeros(shape, dtype=_INT if discrete else _DOUBLE)
        log_probs = np.empty(rows)
        mask_at = None if masks is None or not discrete else _at(masks, _BOOL, (*shape, self._widest))
        uniforms_at = None if uniforms is None else _at(uniforms, _DOUBLE, shape)
        given = mask_at, uniforms_at, _address(actions), _address(log_probs)
        if source is None or masks is None:
            _checked(self._library.esper_policy_choose(self._handle, 0, decisions, *given))
            return actions, log_probs, values
        for head, size in enumerate(self.sizes.head_sizes):
            masks[:, head, :size] = source.mask(head, actions[:, :head])
            _checked(self._library.esper_policy_choose(self._handle, head, 1, *given))
        return actions, log_probs, values

    def values(self, seen: Floats32, h: Floats32, c: Floats32) -> Floats:
        """Return values [B] of seen [B, width] for the memory h and c [B, hidden], which are unchanged."""
        return self._forward(seen, h, c, keep=False)

    def evaluate(self, arrays: Arrays) -> tuple[Floats, Floats, Floats]:
        """Return log-probs [N], entropies [N, heads or dimensions] and values [N] of the N valid steps, in order."""
        given = self._given(arrays)
        count = int(np.count_nonzero(arrays.valid))
        log_probs, entropies, values = np.empty(count), np.empty((count, self._decisions)), np.empty(count)
        places = (_address(array) for array in (log_probs, entropies, values))
        _checked(self._library.esper_policy_evaluate(self._handle, given, *places))
        return log_probs, entropies, values

    def learn(self, arrays: Arrays, sequences: Ints, rule: UpdateRule) -> Learnt:
        """Take one PPO step on some `sequences` [n] of `arrays`, as `workers.ppo.update` defines it.

        Raises ValueError if none of them has a valid step.
        """
        given, learnt = self._given(arrays), _Learnt()
        how = _Rule(**vars(rule))
        _checked(self._library.esper_policy_learn(
            self._handle, given, _at(sequences, _INT, (len(sequences),)), len(sequences), how, self.adam.step, learnt
        ))  # fmt: skip
        numbers = {name: getattr(learnt, name) for name in _NUMBERS}
        self.adam.step += learnt.end == _STEPPED
        if learnt.end == _BEYOND_KL:
            numbers["grad_norm"] = None
        return Learnt(**numbers, stepped=learnt.end == _STEPPED)

    def _forward(self, seen: Floats32, h: Floats32, c: Floats32, keep: bool) -> Floats:
        rows = len(seen)
        state: tuple[int | None, int | None] = None, None
        if self.sizes.lstm:
            state = _at(h, _FLOAT, (rows, self.sizes.hidden)), _at(c, _FLOAT, (rows, self.sizes.hidden))
            if keep and not (h.flags.writeable and c.flags.writeable):
                raise ValueError("h and c cannot be written")
        values = np.empty(rows)
        at = _at(seen, _FLOAT, (rows, self.sizes.width))
        _checked(self._library.esper_policy_step(self._handle, rows, at, *state, keep, _address(values)))
        return values

    def _given(self, arrays: Arrays) -> _Arrays:
        shape = arrays.valid.shape
        kind = _INT if self.sizes.head_sizes else _DOUBLE
        masks = arrays.masks if self.sizes.head_sizes else None
        numbers = (_at(array, _DOUBLE, shape) for array in (arrays.log_probs, arrays.advantages, arrays.returns))
        return _Arrays(
            *shape, _at(arrays.observations, _FLOAT, (*shape, self.sizes.width)),
            _at(arrays.actions, kind, (*shape, self._decisions)),
            None if masks is None else _at(masks, _BOOL, (*shape, self._decisions, self._widest)),
            *numbers, _at(arrays.valid, _BOOL, shape),
            None if arrays.memory is None else _at(arrays.memory, _FLOAT, (2, shape[1], self.sizes.hidden)),
        )


def known_answer(library: ctypes.CDLL) -> str:
    """Return the sha256 of decisions, evaluations and updates of small policies of every kind, on fixed numbers."""
    whole = hashlib.sha256()
    for sizes in _ANSWERING:
        policy, shape = NativePolicy(library, sizes), (_ANSWERED_STEPS, _ANSWERED_SEQUENCES)
        decisions = len(sizes.head_sizes) or sizes.dimensions
        policy._flat[0] = _numbers(policy._flat.shape[1:])
        policy.changed()
        seen, (h, c) = _numbers((*shape, sizes.width), 3.0), _numbers((2, shape[1], sizes.hidden))
        masks = _numbers((*shape, decisions, max(sizes.head_sizes, default=0))) < 0.2
        uniforms = _numbers((shape[1], decisions)).astype(np.float64) + 0.5
        actions = np.stack([policy.step(rows, h, c, masks[0], uniforms)[0] for rows in seen])
        log_probs, advantages, returns = _numbers((3, *shape), 2.0).astype(np.float64)
        arrays = Arrays(
            observations=seen, actions=actions, masks=masks, log_probs=log_probs, advantages=advantages,
            returns=returns, valid=np.arange(shape[0])[:, None] < np.arange(1, shape[1] + 1),
            memory=np.stack((h, c)) if sizes.lstm else None,
        )
        rule = UpdateRule(clip=0.2, value_coef=0.5, entropy_coef=0.01, max_grad_norm=0.5, lr=1e-2, target_kl=math.inf)
        learnt = [policy.learn(arrays, np.arange(shape[1]), rule) for _ in range(2)]
        for array in (actions, h, c, *policy.evaluate(arrays), policy._flat):
            whole.update(array.tobytes())
        whole.update(repr(learnt).encode())
    return whole.hexdigest()


_ANSWERED_STEPS, _ANSWERED_SEQUENCES = 9, 7
_ANSWERING = (
    Sizes(width=5, hidden=19, head_sizes=(3, 2, 4, 2), lstm=True), Sizes(width=18, hidden=33, dimensions=3, lstm=False)
)


def _numbers(shape: tuple[int, ...], scale: float = 1.0) -> Floats32:
    """Return numbers in [-scale / 2, scale / 2), the same on every machine."""
    whole = np.arange(1, math.prod(shape) + 1, dtype=np.int64) * 40503 % 65536
    return ((whole / 65536 - 0.5) * scale).astype(np.float32).reshape(shape)
