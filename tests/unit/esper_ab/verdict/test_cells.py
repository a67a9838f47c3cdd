from hypothesis import given
from hypothesis import strategies as st

from esper_ab.verdict.observation import Observation
from esper_ab.verdict.runs import Runs

GROUPS = ("a", "b", "c")
TASKS = ("", "t")
SEEDS = ("0", "1", "2")
CELL = st.tuples(st.sampled_from(GROUPS), st.sampled_from(TASKS), st.sampled_from(SEEDS))


def runs_of(cells):
    return Runs.of(
        Observation(group=group, task=task, replicate=seed, value=None if number % 3 == 2 else float(number))
        for number, (group, task, seed) in enumerate(cells)
    )


@given(st.lists(CELL, unique=True, max_size=12))
def test_each_run_is_found_by_group_task_and_replicate(cells):
    runs = runs_of(cells)
    wanted = ("2", "9", "0", "1")
    for group in GROUPS:
        for task in TASKS:
            rows = [cells.index((group, task, seed)) if (group, task, seed) in cells else -1 for seed in wanted]
            assert runs.cells.rows_of(group, task, wanted).tolist() == rows
            assert runs.cells.lacking(group, task, wanted) == [
                seed for seed, row in zip(wanted, rows, strict=True) if row < 0
            ]
            own = [row for row, cell in enumerate(cells) if cell[:2] == (group, task)]
            assert runs.cells.rows_in(group, task).tolist() == own
            assert runs.outcomes(group, task).tolist() == [float(row) for row in own if row % 3 != 2]


@given(st.lists(CELL, unique=True, max_size=12))
def test_cells_are_counted_in_the_order_of_their_first_rows(cells):
    counts = {}
    for group, task, _ in cells:
        counts[group, task] = counts.get((group, task), 0) + 1
    assert list(runs_of(cells).cells.sizes.items()) == list(counts.items())
