"""The status of an experiment directory as text for a terminal and as JSON. Loads neither numpy nor torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible, visible_json, visible_line
from esper_ab.contracts.wording import counted, n_pairs
from esper_ab.journal.recent import DIFFERENCE_LABEL
from esper_ab.readers.reported import no_report
from esper_ab.readers.status import RunStatus, Status, status
from esper_ab.stats.text import digits_for, signed


def status_json(experiment_dir: Path, **added_keys: Any) -> str:
    """Return the status of `experiment_dir`, followed by the keys of `added_keys`, as indented JSON."""
    tree = msgspec.to_builtins(status(experiment_dir)) | added_keys
    return visible_json(msgspec.json.format(msgspec.json.encode(tree), indent=2))


def status_text(experiment_dir: Path) -> str:
    """Return the status of `experiment_dir` as text for a terminal."""
    return visible("\n".join(_lines(experiment_dir, status(experiment_dir))))


def _lines(experiment_dir: Path, current_status: Status) -> Iterator[str]:
    detail = ""
    if current_status.detail:
        detail = f": {visible_line(current_status.detail)}"
    remedy = shell_command("report", experiment_dir)
    yield f"{current_status.experiment}: {current_status.state}{detail} (last event {current_status.last_event})"
    if current_status.state == "finished":
        for answer in current_status.verdicts:
            yield from answer.lines
        yield no_report(experiment_dir) or f"  report: {experiment_dir / PAGE}"
    if current_status.state == "stale":
        yield "No process is running it, and it has not ended: the process that ran it has died."
        yield f"Continue it with `{shell_command('resume', experiment_dir)}`; `{remedy}` still works."
    yield from _list_runs(current_status.runs)
    if current_status.state != "finished":  # a finished one shows its adjusted verdict
        yield from _numbers_so_far(current_status)
    for look in current_status.looks:
        yield f"  look at {counted(look.replicates, 'seed')}: {look.outcome}"
    if current_status.torn_bytes:
        yield f"  {current_status.torn_bytes} bytes of an unfinished last line are ignored"
    for note in current_status.notes:
        yield f"  note: {note}"
    if current_status.incidents:
        entries = "1 entry" if current_status.incidents == 1 else f"{current_status.incidents} entries"
        yield f"  {entries} in the incident list: see `{remedy}`"


def _list_runs(runs: tuple[RunStatus, ...]) -> Iterator[str]:
    """Yield how many runs are in each state, and a line for each run that has begun and not finished."""
    counts = Counter(run.state for run in runs)
    yield f"  {counted(len(runs), 'run')}: {', '.join(f'{count} {state}' for state, count in counts.items())}"
    unfinished_runs = [run for run in runs if run.state not in ("finished", "planned", "left out")]
    width = max((len(run.name) for run in unfinished_runs), default=0)
    for run in unfinished_runs:
        yield f"  {run.name:<{width}}  {run.state:<10}  episode {run.episodes} of {run.of_episodes}  on {run.device}"


def _numbers_so_far(current_status: Status) -> Iterator[str]:
    """Yield the recent outcome of each group and the differences, which are neither adjusted nor a verdict."""
    outcome = current_status.measured
    digits = digits_for(current_status.margin)
    digits_of_mean = digits - 1 if current_status.margin >= 1.0 else digits
    for group in current_status.groups:
        recent_words = "not yet"
        if group.outcome is not None:
            recent_words = outcome.value(f"{group.outcome:.{digits_of_mean}f}")
        yield f"  {group.group}: recent {outcome.label} {recent_words}"
    direction_words = "; lower is better" if outcome.sign < 0.0 else ""
    for comparison in current_status.differences:
        if comparison.difference is not None:
            difference = outcome.difference(signed(comparison.difference, digits))
            pairs = n_pairs(comparison.pairs)
            yield f"  {comparison.a} - {comparison.b}: {difference}, {pairs} ({DIFFERENCE_LABEL}{direction_words})"
