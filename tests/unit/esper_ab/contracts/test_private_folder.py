import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from esper_ab.contracts import private_folder as module
from esper_ab.contracts.private_folder import private_folder, remove_private, scratch_folder

# The folder of sockets and keys is nobody else's, and its name is short enough for sockets.


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


# A folder outlives an owner that was killed, but not the next one.


OWNER = """
import signal
from esper_ab.contracts.private_folder import scratch_folder
with scratch_folder() as folder:
    (folder / "written").write_text("1")
    print(folder, flush=True)
    signal.pause()
"""


def owner() -> tuple[subprocess.Popen[str], Path]:
    """A process with a folder, which waits to be killed."""
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_whose_owner_was_killed_is_removed_by_the_next_owner_and_no_other_folder_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (dead, left) = owner()
    (alive, used) = owner()
    dead.kill()
    dead.communicate()
    mine = tmp_path / "mine"
    link = tmp_path / "esper-ab-link"
    mine.mkdir()
    link.symlink_to(mine)
    with scratch_folder():
        young = left.exists()
    monkeypatch.setattr(module, "_YOUNG_S", -1.0)
    with scratch_folder() as folder:
        there = {path.name for path in tmp_path.iterdir()}
    alive.kill()
    alive.communicate()
    assert young, "its owner may not have locked it yet"
    assert there == {folder.name, used.name, "mine", link.name}
    assert not folder.exists()


def test_a_folder_is_removed_by_its_owner() -> None:
    folder = private_folder()
    (folder / "written").touch()
    remove_private(folder)
    assert not folder.exists()
