"""Where an experiment directory keeps what belongs to one run, as paths relative to it."""

from __future__ import annotations

from esper_ab.contracts.records import RunRef

RUNS, LOGS, POLICIES, CHECKPOINTS = "runs", "logs", "policies", "checkpoints"  # folders of an experiment directory
FILE_LIMIT_BYTES = 4 << 30  # of a policy or checkpoint that is read


def folder_of(run: RunRef) -> str:
    """Return the folder of a run's settings and of what its trainer writes."""
    return f"{RUNS}/{_plain(run)}"


def config_of(run: RunRef) -> str:
    """Return the file of the settings that repeat a run."""
    return f"{folder_of(run)}/config.toml"


def out_of(run: RunRef) -> str:
    """Return the folder into which a run's trainer may write."""
    return f"{folder_of(run)}/out"


def log_of(run: RunRef) -> str:
    """Return the file of what a run prints."""
    return f"{LOGS}/{_plain(run)}.log"


def policy_of(run: RunRef) -> str:
    """Return the file of a run's trained policy."""
    return f"{POLICIES}/{run.name}.pt"


def _plain(run: RunRef) -> str:
    """Return the name of a run without a folder in it."""
    return f"{run.group_id}-{run.replicate}"
