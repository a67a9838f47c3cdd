"""What the journal's first line says about the machine and the code.

No environment variables: they may hold secrets.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from esper_ab.code_trees.repository_state import repository_state
from esper_ab.contracts.installed_code import sources
from esper_ab.contracts.process_start import usable_cores
from esper_ab.contracts.trainer import is_command
from esper_ab.health.processor import name_of_processor
from esper_ab.settings.experiment import ResolvedExperiment

_GIT_TIMEOUT_S = 10.0


def machine() -> dict[str, str]:
    """Describe the coordinator's machine as text by key: host, system, processor, usable cores, Python version."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": name_of_processor(),
        "cores": str(usable_cores()),
        "python": platform.python_version(),
    }


def code() -> dict[str, str]:
    """Return a hash of the installed sources and, in a git checkout, the commit and whether files were changed.

    If this package is merely installed inside a user's repository (project/.venv), that repository is not its checkout.
    """
    facts = {"sources": sources()}
    commit = _git("ls-files", Path(__file__).name) and _git("rev-parse", "HEAD")
    if commit:
        facts["commit"] = commit
        facts["dirty"] = "yes" if _git("status", "--porcelain", "--untracked-files=no") else "no"
    return facts


def repository_of_command(experiment: ResolvedExperiment) -> dict[str, str]:
    """Describe the git repository in which a command runs; {} for other trainers, whose files are recorded."""
    if not experiment.trainer or not is_command(experiment.trainer) or experiment.code:
        return {}
    return repository_state(Path(experiment.trainer_folder))


def _git(*arguments: str) -> str:
    """Return git's output in this package's folder; "" if there is no git or no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
