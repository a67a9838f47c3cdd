"""`esper-ab resume`: go on with an experiment whose coordinator is gone, from what its journal and checkpoints hold."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from esper_ab.execution.experiment import make_observers

if TYPE_CHECKING:
    from esper_ab.journal.fold import History
    from esper_ab.launchers import Launcher


def unfinished(run_dir: Path, *, allow_changed_code: bool = False) -> History:
    """The history so far; UsageError when it cannot be resumed, or not by this code, before anything is written."""
    from esper_ab.control.conduct import check_resumable
    from esper_ab.journal.load import load

    history = load(run_dir).history
    check_resumable(run_dir, history, allow_changed_code=allow_changed_code)
    return history


def resume_run(run_dir: Path, launcher: Launcher, *, watched: bool, allow_changed_code: bool = False) -> None:
    """Train what is left and journal it in the same run directory."""
    from esper_ab.control import conduct
    from esper_ab.control.preflight import check_launcher

    history = unfinished(run_dir, allow_changed_code=allow_changed_code)
    check_launcher(launcher, history.plan.lanes)
    with ExitStack() as stack:
        told = make_observers(stack, run_dir, history.plan, history, watched=watched)
        conduct.resume(run_dir, launcher, told, allow_changed_code=allow_changed_code)
