"""Tables with the groups side by side."""

from support.journals.synthetic import Shape, Synthetic

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.tables.groups import groups_table, results_table

GROUPS = {"shaped": Shape(unmeasured=(1, 4)), "simplified": Shape(mode="simplified")}


def row_of(table, label):
    return next(row for row in table.rows if row[0] == label)


def test_a_mean_over_some_of_the_runs_says_over_how_many():
    whole = content(fold(Synthetic(groups=GROUPS, episodes=2).events()))
    _, of_shaped, of_simplified = row_of(groups_table(whole), "parameters added")
    assert of_shaped.endswith("), 4 of 6 runs")
    assert of_simplified.endswith(")")


def test_runs_that_are_not_evaluated_are_not_missing_in_a_measure():
    events = list(Synthetic(groups=GROUPS, episodes=2).events())
    ends = [place for place, event in enumerate(events) if type(event).__name__ == "RunEvaluated"]
    half = content(fold(events[: ends[5] + 1]))
    assert [row[1] for row in results_table(half).rows] == ["3 of 6", "3 of 6"]
    _, of_shaped, of_simplified = row_of(groups_table(half), "parameters added")
    assert of_shaped.endswith("), 2 of 3 runs")
    assert of_simplified.endswith(")")
