"""The range of possible outcomes, without which no claim can hold for every shape of the groups' distributions. Pure.

Among few runs, a failure of any depth may have struck none. So `--shape any` needs to know how deep one can be, and how
high a rare success of the other group.
"""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.measures import Measure


def check_possible(outcome: Measure, worst: float | None, remedies: Sequence[SettingName], task: str = "") -> None:
    """Raise UsageError unless the worst and the best possible outcome are declared; `remedies` declare them."""
    if worst is not None and outcome.best_possible is not None:
        return
    missing_ends = []
    if worst is None:
        missing_ends.append("worst")
    if outcome.best_possible is None:
        missing_ends.append("best")
    task_words = f" of {task}" if task else ""
    remedy_parts: list[str | SettingName] = []
    for remedy in remedies:
        remedy_parts += [" and " if remedy_parts else "", remedy]
    raise UsageError(
        SettingName("shape", "any"),
        f" needs the {' and the '.join(missing_ends)} possible outcome{task_words}, because a few runs do not show how "
        "far a rare one may lie from them; declare the range with ",
        *remedy_parts,
    )
