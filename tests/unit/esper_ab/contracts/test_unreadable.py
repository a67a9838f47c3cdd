"""Whatever bytes are damaged to, decoding them ends in UNREADABLE or in a value."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from esper_ab.contracts.unreadable import UNREADABLE


@given(st.binary())
@example(b'"\xf6"')
def test_damage_has_one_name(data):
    with suppress(*UNREADABLE):
        msgspec.json.decode(data)
    with suppress(*UNREADABLE):
        msgspec.json.decode(b'{"name":"' + data + b'"}', type=dict[str, str])
