"""Temporary files of processes that were killed: what they are called and where they may be. Follows no link."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.answer_files import PAGE, SUMMARY, VERDICT
from esper_ab.contracts.run_files import CHECKPOINTS, POLICIES

_OF_REPORTS = re.compile(rf"\.({'|'.join(map(re.escape, (SUMMARY, VERDICT, PAGE)))})\..+")  # report/build
_OF_TRACKERS = re.compile(r"\..+\.json\..+")  # trackers/state
_OF_WORKERS = re.compile(r"\..+\.pt\.\d+-\d+")  # contracts/below, for workers and for what they send
_AT_WORK_S = 60.0  # reports and trackers write while nobody has the experiment directory


def leftovers(experiment_dir: Path) -> Iterator[Path]:
    """Find leftovers in an experiment directory in which nothing is training."""
    for folder, called in ((experiment_dir, _OF_REPORTS), (experiment_dir / "tracking", _OF_TRACKERS)):
        for path in sorted(folder.glob(".*")) if not folder.is_symlink() or folder == experiment_dir else ():
            if called.fullmatch(path.name) and _is_old(path):
                yield path
    for name in (CHECKPOINTS, POLICIES):
        yield from (path for path in files_below(experiment_dir / name) if _OF_WORKERS.fullmatch(path.name))


def files_below(folder: Path) -> Iterator[Path]:
    """Regular files below `folder`, in order; none when it is a link, and none behind one."""
    for at, below, names in os.walk(folder) if not folder.is_symlink() else ():
        below.sort()
        yield from (path for path in (Path(at, name) for name in sorted(names)) if _is_file(path))


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_old(path: Path) -> bool:
    return _is_file(path) and time.time() - path.stat().st_mtime > _AT_WORK_S
