"""What is decoded and checked at once is what the limits and the look at every number let through."""

from __future__ import annotations

import math
import random

import msgspec
from benchmarks import synthetic
from hypothesis import given
from hypothesis import strategies as st
from support import fake_plans

from esper_ab.contracts import codec
from esper_ab.contracts.messages import EpisodeFinished, Evaluated, Ready, WorkerMessage
from esper_ab.control.intake import all_finite, not_finite

SPEC = fake_plans.plan(n_envs=2, steps=25).blocks[0].runs[0]
DRAW = random.Random(0)
EPISODE, EVALUATION = synthetic.episode(SPEC, 0, DRAW), synthetic.evaluation(SPEC, DRAW)
FRAMES = [
    codec.encode(EpisodeFinished(run=SPEC.ref, seq=1, record=EPISODE)),
    codec.encode(Evaluated(run=SPEC.ref, seq=2, record=EVALUATION)),
    codec.encode(Ready(run=SPEC.ref, warm_up_s=1.0)),
]


@given(st.sampled_from(FRAMES), st.integers(0, 1 << 30), st.integers(0, 255), st.sampled_from("=+-"))
def test_a_damaged_frame_is_understood_alike(frame, place, byte, how):
    at = place % len(frame)
    damaged = frame[:at] + (b"" if how == "-" else bytes([byte])) + frame[at + (how != "+") :]
    try:
        limited = codec._decode(damaged, WorkerMessage)
    except codec.ProtocolError:
        limited = None
    try:
        at_once = codec.decode_from_worker(damaged)
    except codec.ProtocolError:
        at_once = None
    assert repr(at_once) == repr(limited)  # NaN is equal to NaN in its representation


def spoilt(value, number):
    """Every copy of `value` in which one float is `number`."""
    if isinstance(value, float):
        yield number
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            for changed in spoilt(child, number):
                copy = value.copy()
                copy[key] = changed
                yield copy


def test_no_number_escapes():
    for record in (EPISODE, EVALUATION):
        plain = msgspec.msgpack.decode(msgspec.msgpack.encode(record))
        copies = [copy for number in (math.nan, -math.inf) for copy in spoilt(plain, number)]
        assert len(copies) > 50
        for copy in copies:
            broken = msgspec.convert(copy, type=type(record))
            assert not all_finite(broken), next(not_finite(copy, "record"))
        assert all_finite(record)


def test_numbers_whose_sum_overflows_are_finite():
    envs = tuple(msgspec.structs.replace(env, reward_sum=1.7e308) for env in EPISODE.envs)
    assert all_finite(msgspec.structs.replace(EPISODE, envs=envs))
