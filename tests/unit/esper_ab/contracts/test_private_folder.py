"""The folder of sockets and keys: nobody else's, gone with its owner, swept after one that was killed."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from esper_ab.contracts.private_folder import PrivateFolder


@pytest.fixture
def place(monkeypatch):
    """A temporary place with a name short enough for sockets, which tmp_path has not."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_only_its_owner_may_enter_and_it_goes_with_everything_in_it(place):
    folder = PrivateFolder()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    (folder.path / "key").write_text("secret")
    folder.close()
    assert list(place.iterdir()) == []


def test_what_a_killed_owner_left_is_removed_and_what_others_use_is_not(place):
    left = subprocess.run(
        [sys.executable, "-c", "import os; from esper_ab.contracts.private_folder import PrivateFolder\n"
         "print(PrivateFolder().path, flush=True); os._exit(9)"],
        env=os.environ | {"TMPDIR": str(place)}, capture_output=True, text=True, check=False,
    ).stdout.strip()
    assert Path(left).is_dir()
    mine = PrivateFolder()
    foreign = place / "esper-of-somebody"
    foreign.mkdir()
    other = PrivateFolder()
    assert sorted(place.iterdir()) == sorted([mine.path, other.path, foreign])
    for folder in (mine, other):
        folder.close()


SOMEBODY_ELSE = 65534


def _fifo(path):
    os.mkfifo(path, 0o666)


def _link(path):
    path.symlink_to(path.parent.parent / "precious")


def _unix_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def _file(path):
    path.write_text("")
    path.chmod(0o666)


@pytest.mark.parametrize("foreign", [False, pytest.param(True, marks=pytest.mark.skipif(
    os.getuid() != 0, reason="only root can make files of others"))])  # fmt: skip
@pytest.mark.parametrize("make", [_fifo, _link, _unix_socket, Path.mkdir, _file])
def test_nothing_that_stands_in_for_an_owner_is_waited_for_or_believed(place, make, foreign):
    """A pipe would block an open for ever, a link would have a lock put on somebody's file."""
    (place / "precious").write_text("thesis")
    (place / "esper-evil").mkdir(mode=0o777)
    (place / "esper-evil" / "kept").write_text("")
    make(place / "esper-evil" / ".owner")
    if foreign:
        os.chown(place / "esper-evil" / ".owner", SOMEBODY_ELSE, SOMEBODY_ELSE, follow_symlinks=False)
    ours = subprocess.run(
        [sys.executable, "-c", "from esper_ab.contracts.private_folder import PrivateFolder\n"
         "PrivateFolder().close()"],
        env=os.environ | {"TMPDIR": str(place)}, capture_output=True, text=True, timeout=30, check=False,
    )
    assert (ours.returncode, ours.stderr) == (0, "")
    assert (place / "precious").read_text() == "thesis"
    assert (place / "esper-evil" / "kept").exists() == (foreign or make is not _file)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of others")
def test_a_folder_of_somebody_else_is_left_alone_whatever_is_in_it(place):
    (place / "esper-evil").mkdir()
    (place / "esper-evil" / ".owner").write_text("")
    os.chown(place / "esper-evil", SOMEBODY_ELSE, SOMEBODY_ELSE)
    (place / "esper-link").symlink_to(place / "mine")
    (place / "mine").mkdir()
    (place / "mine" / ".owner").write_text("")
    PrivateFolder().close()
    assert {path.name for path in place.iterdir()} == {"esper-evil", "esper-link", "mine"}
    assert (place / "esper-evil" / ".owner").exists()
    assert (place / "mine" / ".owner").exists()
