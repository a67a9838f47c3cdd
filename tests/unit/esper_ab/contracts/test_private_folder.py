"""The folder of sockets and keys is nobody else's, and its name is short enough for sockets."""

from __future__ import annotations

import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from esper_ab.contracts.private_folder import private_folder


def test_only_its_owner_may_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        folder = private_folder()
        assert folder.parent == Path(place)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_socket_fits_whatever_the_temporary_place_is_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = private_folder()
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(folder / "w00.1"))
        assert (folder / "w00.1").is_socket()
    finally:
        shutil.rmtree(folder)
