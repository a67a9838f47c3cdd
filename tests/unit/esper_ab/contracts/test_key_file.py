"""A worker that is given damaged keys says so, instead of waiting for an answer to a handshake."""

from __future__ import annotations

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.key_file import KeyFile, read, write

KEYS = KeyFile(server_public="s" * 40, public="p" * 40, secret="q" * 40)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "w00.json"
    write(path, KEYS)
    return path


def test_what_is_written_is_read_by_its_owner(written):
    assert read(written) == KEYS
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write(written, KEYS)


@given(st.data())
def test_no_flipped_bit_goes_unnoticed(written, data):
    intact = written.read_bytes()
    damaged = bytearray(intact)
    damaged[data.draw(st.integers(0, len(intact) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = written.with_name("damaged.json")
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"damaged\.json is damaged"):
        read(path)
