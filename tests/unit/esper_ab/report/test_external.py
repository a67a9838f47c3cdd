import json

import pytest
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.readers.python_data import read_data
from esper_ab.report.external import external_json, external_report
from esper_ab.report.text import render_text
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.judge import judge

PLAN = make_external_plan(("new", "old"), tuple(map(str, range(10))), scales(), Rule())


@pytest.mark.parametrize("effect", [-5.0, 0.0, 5.0])
def test_every_verdict_without_a_declared_plan_is_marked_exploratory(effect):
    text = render_text(external_report(explore(outcomes(rows(*drawn(20, effect))), scales(), Rule())))
    assert text.startswith("EXPLORATORY.")
    assert "\nexploratory " in text
    assert "declared before the first run" not in text


def test_a_report_under_a_plan_shows_looks_and_departures():
    report = external_report(judge(PLAN, outcomes(rows(*drawn(12, 0.5)))))
    text = render_text(report, in_full=True)
    assert "EXPLORATORY" not in text
    assert "NOT AS PLANNED\n  ! Not in the plan, so ignored: seed 10, 11 (4 rows)." in text
    assert "\nLooks\n" in text
    assert "\nLooks\n" not in render_text(report), "one screen"


def test_the_json_report_has_the_verdicts_and_departures_of_the_answer():
    observations = outcomes(rows(*drawn(9, 1.0)))
    for answer in (explore(observations, scales(), Rule()), judge(PLAN, observations)):
        document = json.loads(external_json(answer))
        assert (document["exploratory"], document["plan"]) == (answer.exploratory, answer.plan or None)
        assert [row["verdict"] for row in document["comparisons"]] == [str(row.verdict) for row in answer.comparisons]
        assert document["departures"] == list(answer.departures)


def test_lines_of_an_external_report_fit_100_columns():
    tasks = ("one", "two")
    table = [row for task in tasks for row in rows(*drawn(20, 2.0), task=task)]
    text = render_text(external_report(explore(outcomes(table), scales(tasks=tasks), Rule())))
    assert max(map(len, text.splitlines())) <= 100


def test_values_without_keys_are_called_runs():
    data = {group: [1.0, 1.3, 1.1] for group in ("old", "new", "other")}
    text = " ".join(render_text(external_report(explore(read_data(data), scales(), Rule()))).split())
    assert "No group has 6 runs, so" in text
    assert "run each with 6 fresh runs or more" in text
    assert "position" not in text


def test_the_rule_names_the_exact_test_for_binary_outcomes():
    successes = outcomes(rows([1.0] * 7 + [0.0], [0.0] * 7 + [1.0]))
    answer = explore(successes, scales(margin=0.1), Rule())
    assert "RULE, CHOSEN AFTER THE RUNS\n  exact McNemar test; " in render_text(external_report(answer))
    assert json.loads(external_json(answer))["rule"].startswith("exact McNemar test; ")


def test_the_rule_names_two_tests_if_only_one_task_is_binary():
    table = [*rows([1.0] * 7 + [0.0], [0.0] * 7 + [1.0], task="one"), *rows(*drawn(8, 2.0), task="two")]
    answer = explore(outcomes(table), scales(margin=0.1, tasks=("one", "two")), Rule())
    text = " ".join(render_text(external_report(answer), in_full=True).split())
    assert "paired t, exact McNemar test where every outcome is 0 or 1; " in text
