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

# The folder of sockets and keys is private, and its path is short enough for sockets.


def test_only_the_owner_can_enter_a_private_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as parent:
        monkeypatch.setattr(tempfile, "tempdir", parent)
        folder = private_folder()
        assert folder.parent == Path(parent)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_socket_path_is_short_enough_in_a_long_temporary_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deep_folder = tmp_path / ("x" * 100)
    deep_folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep_folder))
    folder = private_folder()
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(folder / "w00.1"))
        assert (folder / "w00.1").is_socket()
    finally:
        shutil.rmtree(folder)


# The next owner removes the folder of an owner that was killed.


OWNER = """
import signal
from esper_ab.contracts.private_folder import scratch_folder
with scratch_folder() as folder:
    (folder / "written").write_text("1")
    print(folder, flush=True)
    signal.pause()
"""


def start_owner() -> tuple[subprocess.Popen[str], Path]:
    """Start a process with a scratch folder, which waits for a signal; return it and the folder."""
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_new_owner_removes_only_old_folders_of_killed_owners(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (killed_owner, abandoned) = start_owner()
    (living_owner, used_folder) = start_owner()
    killed_owner.kill()
    killed_owner.communicate()
    user_folder = tmp_path / "mine"
    link = tmp_path / "esper-ab-link"
    user_folder.mkdir()
    link.symlink_to(user_folder)
    with scratch_folder():
        is_spared = abandoned.exists()
    monkeypatch.setattr(module, "_YOUNG_S", -1.0)
    with scratch_folder() as folder:
        remaining_names = {path.name for path in tmp_path.iterdir()}
    living_owner.kill()
    living_owner.communicate()
    assert is_spared, "its owner may not have locked it yet"
    assert remaining_names == {folder.name, used_folder.name, "mine", link.name}
    assert not folder.exists()


def test_an_owner_can_remove_its_private_folder() -> None:
    folder = private_folder()
    (folder / "written").touch()
    remove_private(folder)
    assert not folder.exists()
