"""What scripts that resume their own work ask of an experiment's directory."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.errors import EsperError
from esper_ab.journal.load import load


def finished(experiment_dir: Path) -> bool:
    """Whether the experiment has come to its end; False where there is none."""
    try:
        return load(experiment_dir).history.finished
    except (EsperError, OSError):
        return False
