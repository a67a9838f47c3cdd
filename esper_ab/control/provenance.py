"""Record where an experiment ran: machine and code in the journal's first line, and each run's settings in a folder."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from esper_ab.contracts.experiment_files import config_of
from esper_ab.contracts.files import write_below
from esper_ab.contracts.process_start import usable_cores
from esper_ab.contracts.source_files import sources
from esper_ab.control.event_sink import Observed
from esper_ab.health.processor import name_of_processor
from esper_ab.journal.events import PlanExtended, RunStarted
from esper_ab.plan.experiment_directory import run_toml
from esper_ab.plan.plan import Block, Plan

# --- provenance ------------------------------------------------------------------------------------------------------
# What the journal's first line says about the machine and the code; no environment variables, which may hold secrets.


_GIT_TIMEOUT_S = 10.0


def machine() -> dict[str, str]:
    """Describe the coordinator's machine as text by key: host, system, processor, usable cores, Python version."""
    return {
        "host": platform.node(), "system": platform.platform(), "processor": name_of_processor(),
        "cores": str(usable_cores()), "python": platform.python_version(),
    }


def code() -> dict[str, str]:
    """Return a hash of the installed sources and, in a git checkout, the commit and whether files were changed.

    If this package is merely installed inside a user's repository (project/.venv), that repository is not its checkout.
    """
    found = {"sources": sources()}
    commit = _git("ls-files", Path(__file__).name) and _git("rev-parse", "HEAD")
    if commit:
        found["commit"] = commit
        found["dirty"] = "yes" if _git("status", "--porcelain", "--untracked-files=no") else "no"
    return found


def _git(*arguments: str) -> str:
    """Return git's output in this package's folder; "" if there is no git or no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# --- run folders -----------------------------------------------------------------------------------------------------
# One folder per run with its resolved settings, made when the run starts.


class RunFolders:
    """Observer that makes a folder per run with its resolved settings.

    A failure does no harm, because nothing depends on these files.
    """

    def __init__(self, experiment_dir: Path, plan: Plan, blocks: Sequence[Block]) -> None:
        """`blocks`: all blocks planned so far."""
        self._experiment_dir, self._plan = experiment_dir, plan
        self._specs = {spec.ref.name: spec for block in blocks for spec in block.runs}

    def observe(self, event: Observed) -> None:
        if isinstance(event, PlanExtended):
            self._specs |= {spec.ref.name: spec for block in event.extension.blocks for spec in block.runs}
        elif isinstance(event, RunStarted):
            file = config_of(event.run)
            if not (self._experiment_dir / file).exists():
                text = run_toml(self._plan, self._specs[event.run.name])
                write_below(self._experiment_dir, file, text.encode())
