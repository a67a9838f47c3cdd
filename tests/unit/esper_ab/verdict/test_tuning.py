from hypothesis import given, settings
from hypothesis import strategies as st
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.judge import judge
from esper_ab.verdict.tuning import tune

CELLS = ("slow", "fast")
SEEDS = tuple(map(str, range(8)))  # two seeds choose, six are judged
PLAN = make_external_plan(("new", "old"), SEEDS, scales(), Rule(), cells=CELLS, choosing=2)
CHOOSE = [*rows([70.0, 72.0], [60.0, 61.0], task="slow"), *rows([71.0, 70.0], [65.0, 64.0], task="fast")]


def test_every_group_gets_its_best_cell():
    tuning = tune(outcomes(CHOOSE), PLAN)
    assert [(choice.group, choice.cell) for choice in tuning.choices] == [("new", "slow"), ("old", "fast")]
    plan_for_lower = make_external_plan(
        PLAN.groups, SEEDS, scales(better_direction="lower"), Rule(), cells=CELLS, choosing=2
    )
    assert [choice.cell for choice in tune(outcomes(CHOOSE), plan_for_lower).choices] == ["fast", "slow"]


def test_a_lost_run_counts_against_its_cell():
    lost_rows = [row | ({"outcome": ""} if row["outcome"] == 72.0 else {}) for row in CHOOSE]
    tuning = tune(outcomes(lost_rows), PLAN)
    assert tuning.choices[0].cell == "fast"
    assert tuning.choices[0].means["slow"] == (70.0 + 60.0) / 2.0


def test_the_remaining_seeds_are_judged_at_the_chosen_cells():
    first_answer = judge(PLAN, outcomes(CHOOSE))
    assert first_answer.next_step.endswith("after 6 seeds: run 2, 3, 4, 5, 6, 7 of new, old; new at slow, old at fast.")
    a, b = drawn(6, 8.0)
    judged_rows = [*rows(a, [0.0] * 6, task="slow", first_seed=2), *rows([0.0] * 6, b, task="fast", first_seed=2)]
    result = judge(PLAN, outcomes([*CHOOSE, *judged_rows]))
    (comparison,) = result.comparisons
    assert [(pair.a, pair.b) for pair in comparison.pairs] == list(zip(a, b, strict=True))
    assert comparison.question.scope.endswith("each group at its best of slow, fast (new at slow, old at fast)")
    assert any(departure.startswith("Not used, because other cells were chosen") for departure in result.departures)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-50.0, 50.0), min_size=24, max_size=24))
def test_judged_runs_do_not_affect_the_choice_of_cells(values):
    """This makes the judgement independent of the choice."""
    cells = zip(CELLS, (values[:12], values[12:]), strict=True)
    judged_rows = [
        row for cell, cell_values in cells for row in rows(cell_values[:6], cell_values[6:], task=cell, first_seed=2)
    ]
    tuning = tune(outcomes([*CHOOSE, *judged_rows]), PLAN)
    assert tuning.choices == tune(outcomes(CHOOSE), PLAN).choices
    assert not {row.replicate for row in tuning.observations.rows} & set(PLAN.choosing)


def test_no_further_runs_are_requested_if_every_choosing_run_was_lost():
    lost_rows = [row | {"outcome": ""} for row in CHOOSE]
    result = judge(PLAN, outcomes(lost_rows))
    assert result.next_step == "Nothing can be judged: every run on the seeds for choosing a cell was lost."
