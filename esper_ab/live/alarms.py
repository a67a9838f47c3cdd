"""Lines for incidents in a live view: a pathology of updates is shown once per group, then counted. Pure."""

from __future__ import annotations

from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.journal.events import Incident
from esper_ab.journal.fold import History


class Alarms:
    """Formats incidents: call `line` for each incident, and `counts` at the end."""

    def __init__(self, history_before: History | None) -> None:
        """Count the pathologies in `history_before`, the history before the view opened, without showing them again."""
        self._runs: dict[tuple[str, str], dict[str, None]] = {}  # group and kind -> runs, in order
        self._repeated: set[tuple[str, str]] = set()  # seen again after they were shown
        if history_before is not None:
            for entry in history_before.incidents:
                if entry.category == "ppo_pathology":
                    self._runs.setdefault(_key(entry, history_before), {}).setdefault(entry.run_name)

    def line(self, entry: Incident, history: History) -> str:
        """Return the line to show; "" for a pathology that an earlier run of the group already had."""
        if entry.category == "ppo_pathology":
            affected_runs = self._runs.setdefault(_key(entry, history), {})
            affected_runs.setdefault(entry.run_name)
            if len(affected_runs) > 1:
                self._repeated.add(_key(entry, history))
                return ""
        run_words = f" {entry.run_name}" if entry.run_name else ""
        return f"! {entry.category}{run_words}: {visible_line(entry.detail)}"

    def counts(self) -> list[str]:
        """Return a line with the number of runs for each pathology of which `line` showed only a group's first run."""
        return [
            f"! ppo_pathology {group}: {visible_line(kind)} in {counted(len(runs), 'run')}, {next(iter(runs))} first"
            for (group, kind), runs in self._runs.items()
            if (group, kind) in self._repeated
        ]


def _key(entry: Incident, history: History) -> tuple[str, str]:
    return history.runs[entry.run_name].ref.group_id, str(entry.confounder)
