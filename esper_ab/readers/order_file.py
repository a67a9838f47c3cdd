"""The order in which the trials of an evaluation run, as a CSV file that is filled in and read back.

The file names arms, not groups: the plan has the key. A row without an outcome is still to run if no later trial has
one; otherwise its outcome was lost.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import create_below
from esper_ab.contracts.plain_values import whole_number
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.design.trial_order import LABELS
from esper_ab.formats.cells import cell_text, outcome_of
from esper_ab.formats.csv_table import read_table
from esper_ab.formats.source_table import Cells
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.trials import Trials

COLUMNS = ("trial", "arm", "item", "outcome")
_SHOWN = 8  # trials that a sentence names
_LONGEST = 40  # characters of a cell in a message


class _Row:
    """One trial as filled in."""

    def __init__(self, trial: int, arm: str, item: str, outcome: float | None) -> None:
        self.trial = trial
        self.arm = arm
        self.item = item
        self.outcome = outcome


def write_order(plan: AnalysisPlan) -> bytes:
    """Return the content of the file: a row per trial, with an empty outcome."""
    trials = _trials(plan)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for place, label in enumerate(trials.order):
        writer.writerow((place + 1, label, plan.replicates[place // 2], ""))
    return text.getvalue().encode()


def save_order(plan: AnalysisPlan, path: Path) -> None:
    """Write the file. Raises UsageError if it exists, because it may have outcomes."""
    try:
        create_below(path.parent, path.name, write_order(plan))
    except FileExistsError:
        raise UsageError(f"{path} exists already, and may have outcomes; choose another file") from None


def read_orders(plan: AnalysisPlan, paths: Sequence[Path]) -> Observations:
    """Read the only path. Raises UsageError if there are several, or if it is a folder."""
    if len(paths) != 1 or paths[0].is_dir():
        raise UsageError("a plan of `esper-ab design --level checkpoints` is judged on one file: its order, filled in")
    return read_order(plan, paths[0])


def read_order(plan: AnalysisPlan, file: Path) -> Observations:
    """Read a filled-in file, and tell the groups by the plan's key.

    Raises UsageError, with row and column, if a cell is invalid, or if an arm has an item twice.
    """
    table = read_table(file)
    source = str(file)
    rows = _rows(plan, source, table.columns, table.row_numbers)
    if all(row.outcome is None for row in rows):
        raise UsageError(f"{source}: no trial has an outcome yet; fill in 1 for a success and 0 for a failure")
    departures = tuple(_departures(plan, rows))
    unit = plan.design.unit
    return Observations(
        source=source,
        pair_column=unit,
        rows=Runs.of(_observed(plan, source, rows)),
        outcome_column="outcome",
        departures=departures,
    )


def _trials(plan: AnalysisPlan) -> Trials:
    assert plan.evaluation is not None
    return plan.evaluation


def _rows(plan: AnalysisPlan, source: str, columns: Mapping[str, Cells], numbers: Sequence[int]) -> list[_Row]:
    """Check all cells; rows stay in the order of the file."""
    if lacking := [name for name in COLUMNS if name not in columns]:
        raise UsageError(
            f"{source} has no column {lacking[0]!r}: a plan of `esper-ab design --level checkpoints` is judged on its "
            f"order file, with the columns {', '.join(COLUMNS)}, filled in"
        )
    rows = []
    seen: dict[int, int] = {}
    for index, number in enumerate(numbers):
        trial, arm, item, outcome = (columns[name][index] for name in COLUMNS)
        where = f"{source}, row {number}, column"
        row = _Row(
            trial=_trial_of(plan, trial, f"{where} trial"),
            arm=_one_of(LABELS, arm, f"{where} arm"),
            item=_one_of(plan.replicates, item, f"{where} item"),
            outcome=_binary(outcome, f"{where} outcome"),
        )
        if row.trial in seen:
            raise UsageError(f"{where} trial: trial {row.trial} is in row {seen[row.trial]}, too")
        seen[row.trial] = number
        rows.append(row)
    return rows


def _trial_of(plan: AnalysisPlan, cell: object, where: str) -> int:
    last = 2 * len(plan.replicates)
    trial = whole_number(cell_text(cell))
    if trial is None or not 1 <= trial <= last:
        raise UsageError(f"{where}: {visible_line(cell_text(cell), _LONGEST)!r} is no trial of the plan (1 to {last})")
    return trial


def _one_of(names: Sequence[str], cell: object, where: str) -> str:
    name = cell_text(cell)
    if name not in names:
        known = ", ".join(names) if len(names) <= _SHOWN else f"{names[0]}, …, {names[-1]}"
        raise UsageError(f"{where}: {visible_line(name, _LONGEST)!r} is not in the plan ({known})")
    return name


def _binary(cell: object, where: str) -> float | None:
    outcome = outcome_of(cell, where)
    if outcome not in (None, 0.0, 1.0):
        raise UsageError(f"{where}: {outcome:g} is neither 1 (success) nor 0 (failure); leave it empty if it was lost")
    return outcome


def _departures(plan: AnalysisPlan, rows: Sequence[_Row]) -> Iterator[str]:
    """Yield what differs from the order of the plan."""
    trials = _trials(plan)
    planned = [row.trial for row in rows]
    if planned != sorted(planned):
        yield "The rows are not in the order of their trials: if they ran so, the order was not followed."
    swapped = [row.trial for row in rows if row.arm != trials.order[row.trial - 1]]
    if swapped:
        yield f"Order not followed: {_listed(swapped)} ran the other arm; each outcome counts for the arm in its row."
    moved = [row.trial for row in rows if row.item != plan.replicates[(row.trial - 1) // 2]]
    if moved:
        yield f"Order not followed: {_listed(moved)} ran another item; each outcome counts for the item in its row."
    lost = _lost(rows)
    if lost:
        yield (
            f"Lost: {_listed(lost)} {'has' if len(lost) == 1 else 'have'} no outcome, but later trials have one; a "
            "lost outcome counts against the claim."
        )


def _lost(rows: Sequence[_Row]) -> list[int]:
    """Return the trials without an outcome or without a row before the last one that has an outcome."""
    filled = {row.trial for row in rows if row.outcome is not None}
    return [trial for trial in range(1, max(filled)) if trial not in filled]


def _listed(trials: Sequence[int]) -> str:
    named = ", ".join(map(str, sorted(trials)[:_SHOWN]))
    if len(trials) == 1:
        return f"trial {named}"
    others = f" and {len(trials) - _SHOWN} more" if len(trials) > _SHOWN else ""
    return f"{counted(len(trials), 'trial')} ({named}{others})"


def _observed(plan: AnalysisPlan, source: str, rows: Sequence[_Row]) -> Iterator[Observation]:
    """Yield the outcomes of all trials up to the last one with an outcome, with None for lost ones."""
    trials = _trials(plan)
    by_trial = {row.trial: row for row in rows}
    last = max(row.trial for row in rows if row.outcome is not None)
    done = dict.fromkeys(LABELS, 0)
    seen: dict[tuple[str, str], int] = {}
    for trial in range(1, last + 1):
        row = by_trial.get(trial)
        if row is None:
            row = _Row(trial, trials.order[trial - 1], plan.replicates[(trial - 1) // 2], None)
        name = row.item
        if not plan.paired:  # the trials of an arm are numbered as they ran
            name = plan.replicates[done[row.arm]] if done[row.arm] < len(plan.replicates) else ""
            done[row.arm] += 1
        first = seen.setdefault((row.arm, name), trial)
        if first != trial:
            what = f"item {name}" if plan.paired else "more trials than the plan has"
            where = f" in trials {first} and {trial}" if plan.paired else ""
            raise UsageError(f"{source}: arm {row.arm} has {what}{where}")
        if name:
            yield Observation(group=trials.group_of(row.arm), replicate=name, value=row.outcome, row=trial, order=trial)
