"""Experiment directories that replicate each other: the same groups with other rng seeds. No runs form pairs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.journal.fold import History
from esper_ab.readers.agreement import Source, differing

_OTHER_SEED = "rng_seed: "
_ALLOWED = (_OTHER_SEED, "code: ", "version of ")  # beginnings of lines of `differing`


def are_replications(sources: Sequence[Source]) -> bool:
    """True if all sources have the same groups and settings, and no two have the same rng seed.

    Code and versions may differ, which `remarks` says.
    """
    rng_seeds = {history.plan.experiment.rng_seed for _, history in sources}
    groups = {_settings_of_groups(history) for _, history in sources}
    if len(rng_seeds) < len(sources) or len(groups) > 1:
        return False
    return all(line.startswith(_ALLOWED) for line in differing(sources))


def _settings_of_groups(history: History) -> tuple[bytes, ...]:
    """Return the settings of all groups as JSON, whatever the names and the order of the groups."""
    return tuple(sorted(msgspec.json.encode(group.settings) for group in history.plan.experiment.groups))


def remarks(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return a line for each fact that differs besides the rng seed."""
    return tuple(line for line in differing(sources) if not line.startswith(_OTHER_SEED))
