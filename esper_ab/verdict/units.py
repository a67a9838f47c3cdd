"""Compare the margins of all tasks with the outcomes of runs done elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esper_ab.contracts.errors import SettingName
from esper_ab.contracts.margins import check_margin, check_seen
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.scale import Scale


def check_units(
    scales: Sequence[Scale], observations: Observations, declared_ranges: Mapping[str, tuple[float, float]]
) -> None:
    """Raise UsageError if the margin of a task is not in the unit of its outcomes. `declared_ranges`: those by task."""
    for scale in scales:
        check_margin(scale.outcome, scale.margin, scale.task, declared_ranges.get(scale.task))
        known_mask = observations.rows.task.among([scale.task]) & ~observations.rows.lost
        values = observations.rows.value[known_mask].tolist()
        if scale.task not in declared_ranges:
            check_seen(scale.outcome, scale.margin, values, SettingName("scores", "WORST..TARGET"), scale.task)
