"""One message of every type has the stored bytes of this PROTOCOL; a change of the bytes needs a new number."""

import json
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.goldens.messages import EXAMPLES, FILE

from esper_ab.contracts.codec import ProtocolError, decode_from_coordinator, decode_from_worker, encode
from esper_ab.contracts.messages import (
    PROTOCOL,
    CoordinatorMessage,
    WorkerMessage,
)

ROOT = Path(__file__).parents[4]
GOLDEN = json.loads(FILE.read_text())

FROM_WORKER = get_args(WorkerMessage)


def decode(data, sample_message):
    return decode_from_worker(data) if isinstance(sample_message, FROM_WORKER) else decode_from_coordinator(data)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_has_its_golden_bytes(message):
    """The bytes fix fields, their order and their form; a changed default does not change the wire."""
    golden = bytes.fromhex(GOLDEN["messages"][type(message).__name__])
    decoded_message = decode(golden, message)
    assert type(decoded_message) is type(message)
    assert encode(decoded_message) == golden, (
        "the wire has changed: bump PROTOCOL, then python -m support.goldens.messages"
    )
    assert decode(encode(message), message) == message


def test_every_message_of_this_protocol_has_golden_bytes():
    assert GOLDEN["protocol"] == PROTOCOL
    kinds = {kind.__name__ for kind in (*FROM_WORKER, *get_args(CoordinatorMessage))}
    assert set(GOLDEN["messages"]) == {type(message).__name__ for message in EXAMPLES} == kinds


def test_the_protocol_page_describes_every_message():
    text = (ROOT / "docs" / "internals" / "protocol.md").read_text(encoding="utf-8")
    for kind in GOLDEN["messages"]:
        assert f"`{kind}`" in text
    assert f"protocol {PROTOCOL}" in text


@given(st.binary(max_size=300))
def test_any_bytes_decode_to_a_message_or_raise_a_protocol_error(data):
    for decoder, kinds in ((decode_from_worker, FROM_WORKER), (decode_from_coordinator, get_args(CoordinatorMessage))):
        with suppress(ProtocolError):
            assert isinstance(decoder(data), kinds)


@given(st.sampled_from(EXAMPLES), st.data())
def test_a_damaged_message_decodes_to_a_message_or_raises_a_protocol_error(message, data):
    damaged_bytes = bytearray(encode(message))
    offset = data.draw(st.integers(0, len(damaged_bytes) - 1))
    damaged_bytes[offset] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError):
        decoded_message = decode(bytes(damaged_bytes[: data.draw(st.integers(0, len(damaged_bytes)))]), message)
        assert isinstance(decoded_message, (*FROM_WORKER, *get_args(CoordinatorMessage)))


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_messages_of_the_wrong_direction_are_refused(message):
    decode_as_other_side = decode_from_coordinator if isinstance(message, FROM_WORKER) else decode_from_worker
    with pytest.raises(ProtocolError):
        decode_as_other_side(encode(message))


@pytest.mark.parametrize("hostile_bytes", [b"\x81" * 5000, b"\x91" * 40, b"\xdf\xff\xff\xff\xff", b"\xc7\x01\x05x"])
def test_hostile_bytes_are_refused(hostile_bytes):
    with pytest.raises(ProtocolError):
        decode_from_worker(hostile_bytes)
