"""Messages are packed and unpacked by msgpack within the limits of their types; types are checked afterwards."""

import tracemalloc

import msgpack
import msgspec
import pytest
from support.journals.ready_journals import a_record_of_each_kind
from support.workers.hostile_peers import BOMBS

from esper_ab.contracts.codec import ProtocolError, decode_from_coordinator, decode_from_worker, encode
from esper_ab.contracts.messages import EpisodeFinished, Evaluated, Failed, Hello, Release
from esper_ab.contracts.records import MOST_KEYS, SeedEvent
from esper_ab.contracts.wire_limits import LARGEST_BYTES, limits_of

EPISODE, EVALUATION = a_record_of_each_kind()
MESSAGES = (EpisodeFinished(run=EPISODE.run, record=EPISODE), Evaluated(run=EPISODE.run, record=EVALUATION))
SEED_EVENT = SeedEvent(
    env=0,
    step=3,
    slot="early",
    event="fossilized",
    seed_id="0-early-1",
    blueprint="norm",
    stage="FOSSILIZED",
    alpha=1.0,
    contribution=None,
    params=16,
)
FAILED = limits_of(Failed)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_an_encoded_message_is_plain_msgpack(message):
    assert encode(message) == msgpack.packb(msgspec.to_builtins(message))
    assert decode_from_worker(encode(message)) == message


def test_a_message_with_20000_events_can_be_decoded():
    long_message = EpisodeFinished(
        run=EPISODE.run, record=msgspec.structs.replace(EPISODE, seed_events=(SEED_EVENT,) * 20_000)
    )
    assert decode_from_worker(encode(long_message)) == long_message


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"kind": "Failed", "summary": "x" * (FAILED.text_bytes + 1), "traceback": ""}, "max_str_len"),
        ({"kind": "Failed", **{str(i): 0 for i in range(MOST_KEYS)}}, "max_map_len"),
        ({"kind": "Failed", "summary": [0] * (1 << 18) + [1], "traceback": ""}, "max_array_len"),
        ({"kind": "Failed", "summary": b"x", "traceback": ""}, "max_bin_len"),
        ({"kind": "Failed", "summary": msgpack.ExtType(1, b"x"), "traceback": ""}, "max_ext_len"),
        ({"kind": "Failed", "summary": [[]] * 100_000, "traceback": ""}, "too many lists and maps"),
        ({"kind": "Failed", 1: "x"}, "not allowed for map key"),
        ({"kind": "Failed", "summary": [], "traceback": ""}, r"`str`, got `array` - at `\$.summary`"),
        ({"kind": "Failed", "summary": "", "traceback": "", "more": 1}, "unknown field `more`"),
        ({"kind": "Release", "run_name": "a/0", "milestone": 1}, "is not a map whose `kind` is one of Hello"),
        ({"kind": ["Failed"]}, "is not a map whose `kind`"),
        ({}, "is not a map whose `kind`"),
        (["Failed"], "is not a map whose `kind`"),
    ],
)
def test_an_invalid_message_is_refused(value, reason):
    with pytest.raises(ProtocolError, match=reason):
        decode_from_worker(msgpack.packb(value))


def test_a_value_nested_deeper_than_its_type_is_refused():
    nested_message = msgspec.to_builtins(MESSAGES[0])
    nested_message["record"]["envs"][0]["measures"] = {"loss": {"deeper": 1.0}}
    with pytest.raises(ProtocolError, match=r"got `object` - at `\$.record.envs\[0\].measures\[...\]`"):
        decode_from_worker(msgpack.packb(nested_message))
    with pytest.raises(ProtocolError, match="StackError"):
        decode_from_worker(b"\x91" * 2000 + b"\xc0")


def test_truncated_and_extended_messages_are_refused():
    data = encode(Release(run_name="a/0", milestone=1))
    for wrong_data in (data[:-1], data + b"\xc0", b"", bytes(LARGEST_BYTES + 1)):
        with pytest.raises(ProtocolError):
            decode_from_coordinator(wrong_data)


def test_a_string_is_not_converted_to_an_integer():
    hello = {
        "kind": "Hello",
        "worker": "w00",
        "incarnation": "1",
        "protocol": 1,
        "pid": 1,
        "uuids": [],
        "torch_version": "",
        "sources": "",
    }
    with pytest.raises(ProtocolError, match="`int`, got `str`"):
        decode_from_worker(msgpack.packb(hello))
    assert decode_from_worker(msgpack.packb(hello | {"incarnation": 1})) == Hello(
        worker="w00", incarnation=1, protocol=1, pid=1, uuids=(), torch_version="", sources=""
    )


@pytest.mark.parametrize("frame", BOMBS, ids=lambda frame: frame[:6].hex())
def test_decoding_takes_memory_in_proportion_to_the_length_of_the_frame(frame):
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode_from_worker(frame)
        assert tracemalloc.get_traced_memory()[1] < 16 * len(frame) + (1 << 20)
    finally:
        tracemalloc.stop()
