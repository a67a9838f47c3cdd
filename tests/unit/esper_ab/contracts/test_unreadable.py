"""Errors of msgspec for bytes that were damaged; there are several, and all must be caught."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from esper_ab.contracts.unreadable import UNREADABLE


@given(st.binary())
@example(b"\xf6")
def test_damage_has_one_name(data):
    try:
        found = msgspec.json.decode(b'{"name":"' + data + b'"}', type=dict[str, str])
    except UNREADABLE:
        return
    assert isinstance(found, dict)
