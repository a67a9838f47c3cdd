"""The experiments that an experiment replicates, as they lie beside its directory."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.readers.agreement import Source


def with_earlier(experiment_dir: Path, history: History) -> list[Source]:
    """Return the experiments that `history` replicates, and itself, named by their folders.

    Return [] if one of them is not in the same parent directory, or cannot be read.
    """
    parent = experiment_dir.resolve().parent
    sources: list[Source] = []
    for earlier in history.plan.earlier:
        try:
            earlier_history = load(parent / earlier.name).history
        except (JournalError, UsageError):
            return []
        if earlier_history.plan.digest != earlier.digest:
            return []
        sources.append((earlier.name, earlier_history))
    return [*sources, (experiment_dir.resolve().name, history)]
