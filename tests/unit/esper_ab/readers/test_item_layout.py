"""Rows of items are distinguished from rows of runs; the user is asked about ambiguous tables."""

import pytest
from support.outcomes.item_tables import item_columns, replaced

import esper_ab
from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.readers.external_table import observations_of


def read(columns, names=None, rows=None):
    return observations_of("f", columns, range(2, 2 + len(columns["outcome"])), names, rows=rows)


def renamed(columns, **names):
    """The columns under other names."""
    return {names.get(name, name): values for name, values in columns.items()}


def judged(data, **options):
    return esper_ab.compare_outcomes(data, margin=0.02, **options)


@pytest.mark.parametrize("name", ["question", "prompt", "doc_id", "scene", "Episodes", "item", "sample_idx", "problem"])
def test_a_column_of_items_is_recognised_by_its_name(name):
    layout = read(renamed(item_columns(runs=3, items=10), question=name))
    assert layout.table.item_column == name
    assert len(layout.table.items) == 10
    assert layout.table.runs == ("0", "1", "2")


def test_the_user_can_name_any_column_as_the_item_column():
    columns = renamed(item_columns(runs=3, items=10), question="puzzle")
    assert read(columns, {"item": "puzzle"}).table.item_column == "puzzle"


def test_a_column_of_items_is_ignored_if_runs_have_one_row_each():
    columns = {"group": ["a", "b"], "seed": [0, 0], "episode": [500, 500], "outcome": [1.0, 2.0]}
    layout = read(columns)
    assert layout.table is None
    assert len(layout.rows) == 2


def test_repeats_of_items_are_recognised_by_a_separate_column():
    columns = item_columns(runs=1, items=10, repeats=3, run_column="")
    assert read(columns).table.item_column == "question"
    episodes = renamed(columns, question="scene", epoch="episode")
    assert read(episodes).table.item_column == "scene"


def test_items_of_a_coarser_column_share_a_cluster():
    columns = renamed(item_columns(runs=1, items=60, run_column=""), question="episode")
    columns["scene"] = [episode // 2 for episode in columns["episode"]]
    answer = judged(columns)
    assert answer.observations.reading[0] == (
        "Read: 2 checkpoints x 60 episodes in clusters in 2 groups; level: checkpoints."
    )
    assert answer.comparisons[0].effect.clusters == 30


def test_the_user_is_asked_whether_rows_of_one_run_are_items_or_runs():
    columns = renamed(item_columns(runs=1, items=40), question="index")
    with pytest.raises(Unanswered) as refusal:
        read(columns)
    assert str(refusal.value) == (
        "f: 80 rows name only 2 runs (seed), which differ in the column index; each row is an item, such as a question "
        "or an episode of that run, or a training run of its own: --rows items or --rows runs"
    )
    items = judged(columns, rows="items")
    assert items.comparisons[0].headline.startswith(("On these 40 items", "Not decided on these 40 items"))
    assert len(items.comparisons[0].pairs) == 40
    runs = judged(columns, rows="runs").comparisons[0]
    assert runs.headline.endswith("40 training runs per group.")


def test_unnamed_rows_of_one_run_form_no_pairs():
    columns = {"group": ["a"] * 30 + ["b"] * 30, "seed": [0] * 60, "outcome": [0.0, 1.0, 1.0] * 20}
    answer = judged(columns, rows="items")
    assert answer.observations.reading == ("Read: 2 checkpoints x 30 items in 2 groups; level: checkpoints.",)
    assert answer.comparisons[0].samples is not None


def test_a_single_repeated_seed_is_refused_and_not_read_as_an_item():
    columns = {"group": ["a", "a", "b", "b", "b"], "seed": [0, 1, 0, 1, 1], "outcome": [1.0, 2.0, 3.0, 4.0, 5.0]}
    with pytest.raises(UsageError, match="row 6, column seed: group b also has seed 1 in row 5; one row per run"):
        read(columns)


@pytest.mark.parametrize("name", ["run", "seed", "pair"])
def test_the_user_is_asked_whether_many_shared_run_names_are_items(name):
    columns = renamed(item_columns(runs=1, items=60, shift=0.3, run_column=""), question=name)
    with pytest.raises(UsageError, match=r"group new has 60 rows.*: rows=items or rows=runs"):
        judged(columns)
    assert judged(columns, rows="runs").comparisons[0].headline.endswith("60 training runs per group.")
    assert "On these 60 items, checkpoint new" in judged(columns, rows="items").comparisons[0].headline


def test_run_names_that_groups_do_not_share_name_independent_runs():
    columns = renamed(item_columns(runs=1, items=60, shift=0.3, run_column=""), question="run")
    columns = replaced(columns, "run", lambda row: f"{row['group']}{row['run']}")
    assert judged(columns).comparisons[0].headline.endswith("60 training runs per group.")


def test_a_seed_column_named_like_items_is_refused_as_seeds():
    columns = item_columns(runs=1, items=25, shift=0.3, run_column="")
    with pytest.raises(UsageError, match="the column question names items of a run, not training runs"):
        judged(columns, columns={"seed": "question"})
    items = judged(columns, columns={"seed": "question"}, rows="items").comparisons[0]
    assert "On these 25 questions" in items.headline or "on these 25 questions" in items.headline


def test_a_column_of_steps_is_not_read_as_items():
    columns = renamed(item_columns(runs=3, items=10), question="step")
    with pytest.raises(UsageError, match="group new also has seed 0"):
        read(columns)


def test_a_wide_table_has_a_row_per_item():
    columns = {"question": list(range(30)), "old": [0.0, 1.0, 0.5] * 10, "new": [1.0, 1.0, 0.5] * 10}
    answer = judged(columns, groups=("new", "old"))
    assert answer.comparisons[0].headline.startswith("On these 30 questions, checkpoint new is better")


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("outcome", "fast", "row 5, column outcome: expected a number, such as 71.25, not 'fast'"),
        ("group", "", "row 5, column group: empty"),
        ("question", "", "row 5, column question: empty, but every score needs an item"),
        ("task", "mean over tasks", "row 5, column task: the name 'mean over tasks' is reserved"),
    ],
)
def test_the_refusal_of_an_invalid_cell_names_row_and_column(column, cell, reason):
    columns = item_columns(runs=2, items=10)
    columns["task"] = ["t"] * len(columns["outcome"])
    columns[column][3] = cell
    with pytest.raises(UsageError, match=reason):
        read(columns)


def test_different_spellings_of_a_seed_are_the_same_run():
    columns = replaced(
        item_columns(runs=3, items=10),
        "seed",
        lambda row: f"{row['seed']:02}" if row["group"] == "new" else row["seed"],
    )
    assert read(columns).table.runs == ("0", "1", "2")


@pytest.mark.parametrize(("true_value", "false_value"), [("True", "False"), (True, False)])
def test_booleans_in_rows_of_items_are_read_as_1_and_0(true_value, false_value):
    columns = replaced(
        item_columns(runs=2, items=10), "outcome", lambda row: true_value if row["outcome"] else false_value
    )
    assert set(read(columns).table.score) == {0.0, 1.0}
