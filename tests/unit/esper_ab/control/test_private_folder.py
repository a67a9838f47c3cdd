"""The folder of sockets and keys: nobody else's, gone with its owner, swept after one that was killed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from esper_ab.control.private_folder import PrivateFolder


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
        [sys.executable, "-c", "import os; from esper_ab.control.private_folder import PrivateFolder\n"
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
