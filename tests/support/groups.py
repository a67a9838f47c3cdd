"""A control group of its own for the processes of a test, where this machine and user may make one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_MEMORY = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))


@contextmanager
def limited_memory(limit_bytes: int) -> Iterator[Path]:
    """The folder of a group with so much memory."""
    with _made(_MEMORY, limit_bytes) as folder:
        yield folder


@contextmanager
def _made(places: tuple[tuple[str, str], ...], limit: int) -> Iterator[Path]:
    for root, name in places:
        folder = Path(root) / f"esper-test-{os.getpid()}"
        try:
            folder.mkdir()
            (folder / name).write_text(str(limit))
        except OSError:
            if folder.exists():
                folder.rmdir()
            continue
        try:
            yield folder
        finally:
            folder.rmdir()
        return
    pytest.skip("no control group can be made here")


def inside(folder: Path, line: list[str]) -> list[str]:
    """A command line that moves itself into the group before it becomes `line`."""
    return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(folder / "cgroup.procs"), *line]
