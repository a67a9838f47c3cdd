"""Files that belong to one run, as paths relative to the experiment directory."""

from __future__ import annotations

from esper_ab.contracts.records import RunRef

# Folders of an experiment directory.
RUNS = "runs"
LOGS = "logs"
POLICIES = "policies"
CHECKPOINTS = "checkpoints"
REUSED = "reused"  # policies of kept runs
_NO_SIGNS = str.maketrans("=+", "__")
FILE_LIMIT_BYTES = 4 << 30  # largest policy or checkpoint that is read


def folder_of(run: RunRef) -> str:
    """Return the folder for a run's settings and for the output of its trainer."""
    return f"{RUNS}/{_plain(run)}"


def config_of(run: RunRef) -> str:
    """Return the settings file from which a run can be repeated."""
    return f"{folder_of(run)}/config.toml"


def out_of(run: RunRef) -> str:
    """Return the folder into which a run's trainer may write."""
    return f"{folder_of(run)}/out"


def log_of(run: RunRef) -> str:
    """Return the log file of a run, for everything that it prints."""
    return f"{LOGS}/{_plain(run)}.log"


def policy_of(run: RunRef) -> str:
    """Return the file for the trained policy of a run."""
    return f"{POLICIES}/{run.name}.pt"


def reused_policy_of(run_name: str) -> str:
    """Return the file for the policy of a kept run that may stand for this one."""
    return f"{REUSED}/{run_name}.pt"


def _plain(run: RunRef) -> str:
    """Return a run's name written without a slash."""
    return f"{plain_group(run.group_id)}-{run.replicate}"


def plain_group(name: str) -> str:
    """Return a folder name for a group, without "=" and "+", so that it is safe in a script's key=value argument."""
    return name.translate(_NO_SIGNS)
