"""The stored runs and the tables by `--outcome-over`."""

import json
import statistics

import outcome_windows
import pytest
from support.journals.synthetic import Shape, Synthetic

from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcome_of


def cell(group, evaluations, curves, **changes):
    seeds = list(range(len(curves)))
    return {
        "task": "t",
        "setup": "9 x 1",
        "group": group,
        "seeds": seeds,
        "evaluations": evaluations,
        "curves": curves,
    } | changes


A = cell("a", [4.0, 8.0, 6.0], [[0.0] * 6 + [3.0, 3.0, 6.0], [0.0] * 6 + [6.0, 6.0, 6.0], [0.0] * 6 + [5.0, 5.0, 5.0]])
B = cell("b", [1.0, 1.0, 1.0], [[0.0] * 9] * 3)


def test_stored_runs_have_the_outcomes_of_the_journal():
    history = fold(Synthetic(groups={"a": Shape(), "b": Shape(accuracy=73.0)}, episodes=9).events())
    cells = [cell("a", [1.0], [[1.0]])]
    outcome_windows.add(cells, history)
    assert [(stored["setup"], stored["group"]) for stored in cells] == [("9 x 1", "a"), ("9 x 4", "a"), ("9 x 4", "b")]
    for part in outcome_windows.PARTS:
        runs = [outcome_of(run, part) for run in history.of_group("b")]
        assert outcome_windows.outcomes(cells[-1], part) == pytest.approx(runs, abs=0.01)


def test_runs_of_the_same_setup_are_replaced():
    history = fold(Synthetic(episodes=9).events())
    cells = []
    outcome_windows.add(cells, history)
    outcome_windows.add(cells, history)
    assert [stored["group"] for stored in cells] == list(history.groups)


def test_the_variances_of_runs_are_relative_to_the_evaluation(monkeypatch):
    monkeypatch.setattr(outcome_windows, "pairs_needed", lambda ratio, effect: round(100 * ratio))
    (row,) = list(outcome_windows.runs_table([A]))[2:]
    third = statistics.variance([4.0, 6.0, 5.0]) / 4.0
    assert "6 / 5.667 / 5 / 1.667" in row
    assert f"0.08 / {third:.2f} / 0.03 | 100 / 8 / 25 / 3 | 100 / 8 / 25 / 3" in row


def test_a_group_at_the_cap_has_no_ratio_of_variances(monkeypatch):
    monkeypatch.setattr(outcome_windows, "pairs_needed", lambda ratio, effect: round(100 * ratio))
    (alone,) = list(outcome_windows.runs_table([A]))[2:]
    (beside,) = list(outcome_windows.runs_table([A, B]))[2:]
    assert beside.split("|")[6:] == alone.split("|")[6:]


def test_a_window_without_spread_needs_the_fewest_pairs_of_a_claim():
    assert outcome_windows.pairs_needed(0.0, 0.5) == 6


def test_couples_of_groups_are_compared_by_pairs_of_seeds():
    (row,) = list(outcome_windows.couples_table([A, B]))[2:]
    assert row == "| t | 9 x 1 | 1 | 0.08 / 0.25 / 0.03 | 5 / 5.67 / 5 / 1.67 | 1 / 1 / 1 |"


def test_the_page_has_the_table_of_couples_that_follows_from_the_stored_runs():
    stored = json.loads(outcome_windows.STORED.read_text())
    lines = outcome_windows.PAGE.read_text().splitlines()
    assert [row for row in outcome_windows.couples_table(stored["cells"]) if row not in lines] == []
