"""What is decoded at once is what the limits let through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.journals import a_record_of_each_kind

from esper_ab.contracts import codec
from esper_ab.contracts.messages import EpisodeFinished, Evaluated, Ready, WorkerMessage

EPISODE, EVALUATION = a_record_of_each_kind()
FRAMES = [
    codec.encode(EpisodeFinished(run=EPISODE.run, record=EPISODE)),
    codec.encode(Evaluated(run=EPISODE.run, record=EVALUATION)),
    codec.encode(Ready(run=EPISODE.run, warm_up_s=1.0)),
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
