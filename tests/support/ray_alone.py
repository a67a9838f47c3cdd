"""Commands of a user with a cluster of Ray, their own or one that is there, and what they leave behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.children import environment

MARK = "RAY_ALONE_MARK"  # in the environment of everything that is started
FLAGS = (
    "--task", "synthetic", "--groups", "shaped,wait", "--seeds", "3", "--looks", "3", "--n-envs", "2", "--steps",
    "4", "--launcher", "ray", "--quiet", "--devices", "cpu:0", "cpu:1",
)  # fmt: skip


def begin(folder: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    """`esper-ab WORDS` in a session of its own, as from a terminal."""
    own = environment(**{MARK: str(folder), "TMPDIR": str(folder / "tmp"), "RAY_ADDRESS": "", **more})
    (folder / "tmp").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "esper_ab.commands.cli", *words]
    return subprocess.Popen(
        command, cwd=folder, env=own, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def left(folder: Path) -> dict[int, str]:
    """Processes of `begin` in `folder` that are there, with their command lines."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                if f"{MARK}={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def sessions(lines: list[str]) -> set[Path]:
    """Folders of Ray's sessions that these command lines name."""
    return {Path(found) for line in lines for found in re.findall(r"/[^ ,:]*?/session_2[\d_-]+", line)}
