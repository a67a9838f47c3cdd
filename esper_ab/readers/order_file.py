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
    if missing_columns := [name for name in COLUMNS if name not in columns]:
        raise UsageError(
            f"{source} has no column {missing_columns[0]!r}: a plan of `esper-ab design --level checkpoints` is judged "
            "on its "
            f"order file, with the columns {', '.join(COLUMNS)}, filled in"
        )
    rows = []
    seen_trials: dict[int, int] = {}
    for index, number in enumerate(numbers):
        trial, arm, item, outcome = (columns[name][index] for name in COLUMNS)
        place_prefix = f"{source}, row {number}, column"
        row = _Row(
            trial=_trial_of(plan, trial, f"{place_prefix} trial"),
            arm=_one_of(LABELS, arm, f"{place_prefix} arm"),
            item=_one_of(plan.replicates, item, f"{place_prefix} item"),
            outcome=_binary(outcome, f"{place_prefix} outcome"),
        )
        if row.trial in seen_trials:
            raise UsageError(f"{place_prefix} trial: trial {row.trial} is in row {seen_trials[row.trial]}, too")
        seen_trials[row.trial] = number
        rows.append(row)
    return rows


def _trial_of(plan: AnalysisPlan, cell: object, place: str) -> int:
    last_trial = 2 * len(plan.replicates)
    trial = whole_number(cell_text(cell))
    if trial is None or not 1 <= trial <= last_trial:
        raise UsageError(
            f"{place}: {visible_line(cell_text(cell), _LONGEST)!r} is no trial of the plan (1 to {last_trial})"
        )
    return trial


def _one_of(names: Sequence[str], cell: object, place: str) -> str:
    name = cell_text(cell)
    if name not in names:
        known_words = ", ".join(names) if len(names) <= _SHOWN else f"{names[0]}, …, {names[-1]}"
        raise UsageError(f"{place}: {visible_line(name, _LONGEST)!r} is not in the plan ({known_words})")
    return name


def _binary(cell: object, place: str) -> float | None:
    outcome = outcome_of(cell, place)
    if outcome not in (None, 0.0, 1.0):
        raise UsageError(f"{place}: {outcome:g} is neither 1 (success) nor 0 (failure); leave it empty if it was lost")
    return outcome


def _departures(plan: AnalysisPlan, rows: Sequence[_Row]) -> Iterator[str]:
    """Yield what differs from the order of the plan."""
    trials = _trials(plan)
    trial_order = [row.trial for row in rows]
    if trial_order != sorted(trial_order):
        yield "The rows are not in the order of their trials: if they ran so, the order was not followed."
    swapped_trials = [row.trial for row in rows if row.arm != trials.order[row.trial - 1]]
    if swapped_trials:
        yield (
            f"Order not followed: {_listed(swapped_trials)} ran the other arm; each outcome counts for the arm in its "
            "row."
        )
    moved_trials = [row.trial for row in rows if row.item != plan.replicates[(row.trial - 1) // 2]]
    if moved_trials:
        yield (
            f"Order not followed: {_listed(moved_trials)} ran another item; each outcome counts for the item in its "
            "row."
        )
    lost_trials = _lost(rows)
    if lost_trials:
        verb = "have"
        if len(lost_trials) == 1:
            verb = "has"
        yield (
            f"Lost: {_listed(lost_trials)} {verb} no outcome, but later trials have one; a lost outcome counts against "
            "the claim."
        )


def _lost(rows: Sequence[_Row]) -> list[int]:
    """Return the trials without an outcome or without a row before the last one that has an outcome."""
    filled_trials = {row.trial for row in rows if row.outcome is not None}
    return [trial for trial in range(1, max(filled_trials)) if trial not in filled_trials]


def _listed(trials: Sequence[int]) -> str:
    trials_words = ", ".join(map(str, sorted(trials)[:_SHOWN]))
    if len(trials) == 1:
        return f"trial {trials_words}"
    rest_words = f" and {len(trials) - _SHOWN} more" if len(trials) > _SHOWN else ""
    return f"{counted(len(trials), 'trial')} ({trials_words}{rest_words})"


def _observed(plan: AnalysisPlan, source: str, rows: Sequence[_Row]) -> Iterator[Observation]:
    """Yield the outcomes of all trials up to the last one with an outcome, with None for lost ones."""
    trials = _trials(plan)
    by_trial = {row.trial: row for row in rows}
    last_trial = max(row.trial for row in rows if row.outcome is not None)
    done_counts = dict.fromkeys(LABELS, 0)
    seen_trials: dict[tuple[str, str], int] = {}
    for trial in range(1, last_trial + 1):
        row = by_trial.get(trial)
        if row is None:
            row = _Row(trial, trials.order[trial - 1], plan.replicates[(trial - 1) // 2], None)
        name = row.item
        if not plan.paired:  # the trials of an arm are numbered as they ran
            name = plan.replicates[done_counts[row.arm]] if done_counts[row.arm] < len(plan.replicates) else ""
            done_counts[row.arm] += 1
        first_trial = seen_trials.setdefault((row.arm, name), trial)
        if first_trial != trial:
            surplus_words = f"item {name}" if plan.paired else "more trials than the plan has"
            trials_words = f" in trials {first_trial} and {trial}" if plan.paired else ""
            raise UsageError(f"{source}: arm {row.arm} has {surplus_words}{trials_words}")
        if name:
            yield Observation(group=trials.group_of(row.arm), replicate=name, value=row.outcome, row=trial, order=trial)
