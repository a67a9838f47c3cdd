"""What folders of runs have besides outcomes: logs, descriptions, and what tools keep for themselves. Pure.

Some of it looks like a table, such as a log whose lines have commas. A file that the user names is read nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_LOGS = frozenset({".err", ".log", ".out"})
_DESCRIPTIONS = frozenset(
    {".cfg", ".diff", ".html", ".ini", ".ipynb", ".lock", ".md", ".patch", ".py", ".sh", ".toml", ".yaml", ".yml"}
)
_SETTINGS = re.compile(
    r"(?:.*[-_.])?(?:args|arguments|command|config|configuration|hparams|hyperparameters|metadata|params|parameters"
    r"|requirements|settings)(?:\.json|\.txt)?",
    re.IGNORECASE,
)
_WANDB = "wandb"
_WANDB_RUN_FOLDER = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-.+")
_WANDB_RUN_FILE = re.compile(r"run-.+\.wandb")
_MLFLOW_RUN = frozenset({"meta.yaml", "params", "tags"})
_MLFLOW_SETTINGS = frozenset({"params", "tags"})  # folders with a file per parameter and tag


def is_log_or_description(name: str) -> bool:
    """True if the file is a log or a description of a run by its name, such as debug.log or params.json."""
    suffix = PurePath(name).suffix.lower()
    return suffix in _LOGS or suffix in _DESCRIPTIONS or _SETTINGS.fullmatch(name) is not None


def may_have_outcomes(folder: str, names: Sequence[str]) -> list[str]:
    """Return those `names` of files and folders in the folder that may have outcomes: in a run of W&B, its file."""
    if run_files := [name for name in names if _WANDB_RUN_FILE.fullmatch(name)]:
        return run_files
    if folder == _WANDB and (run_folders := [name for name in names if _WANDB_RUN_FOLDER.fullmatch(name)]):
        return run_folders
    if {*names} >= _MLFLOW_RUN:
        return [name for name in names if name not in _MLFLOW_SETTINGS]
    return list(names)
