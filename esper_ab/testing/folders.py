"""The folder of each assertion's experiment, and how many runs it may train at a time."""

from __future__ import annotations

import os
import re
from pathlib import Path

from esper_ab.contracts.process_start import usable_cores
from esper_ab.pytest_plugin.session import current

_TEST = "PYTEST_CURRENT_TEST"  # set by pytest: FILE::TEST (call)
_PROCESS = "PYTEST_XDIST_WORKER"  # set by pytest-xdist in each of its processes
_PROCESSES = "PYTEST_XDIST_WORKER_COUNT"  # likewise
_LONGEST = 60


def output_folder() -> Path:
    """Return the folder in which an assertion makes the directory of its experiment.

    It is named after the test, in the folder that the user has chosen or in pytest's temporary one; outside pytest it
    is `experiments`. Names of directories in it are generated, so several processes can use it.
    """
    session = current()
    if session is None:
        return Path("experiments")
    name = re.sub(r"[^A-Za-z0-9]+", "-", os.environ.get(_TEST, "").partition("::")[2].partition(" ")[0]).strip("-")
    name = name[:_LONGEST] or "esper-ab"
    if session.directory is not None:
        return session.directory / name
    if session.make_temporary is not None:
        return session.make_temporary(name)
    return Path("experiments")


def folder_of_all(output_dir: Path) -> Path:
    """Return the folder that has the output folders of all assertions, those of other processes among them.

    Nothing in it is a part of the user's code, although it may be in their repository.
    """
    session = current()
    if session is None:
        return output_dir
    if session.directory is not None:
        return session.directory
    if session.make_temporary is None:
        return output_dir
    return output_dir.parents[1 if os.environ.get(_PROCESS) else 0]  # each process has a folder of its own


def most_parallel() -> int | None:
    """Return how many runs may train at a time, if processes of pytest-xdist share the cores; None: no limit."""
    processes = int(os.environ.get(_PROCESSES, "1"))
    if processes < 2:
        return None
    return max(1, usable_cores() // processes)
