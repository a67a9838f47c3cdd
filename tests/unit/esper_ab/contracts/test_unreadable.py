"""All errors that msgspec raises for damaged bytes are caught."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from esper_ab.contracts.unreadable import UNREADABLE


@given(st.binary())
@example(b"\xf6")
def test_decoding_damaged_bytes_returns_a_value_or_raises_an_unreadable_error(data):
    try:
        decoded_value = msgspec.json.decode(b'{"name":"' + data + b'"}', type=dict[str, str])
    except UNREADABLE:
        return
    assert isinstance(decoded_value, dict)
