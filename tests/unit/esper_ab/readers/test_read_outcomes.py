import pytest
from support.outcomes.csv_outcomes import csv_text

from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.readers.read_outcomes import read_outcomes
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.steps import StepRule


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file


def rows_of(paths, **rule_changes):
    outcomes = read_outcomes(paths, ReadingRules(**rule_changes))
    observations = outcomes.observations
    rows = [(row.group, row.replicate, row.value) for row in observations.rows]
    return rows, (*observations.reading, *observations.notes), outcomes.name_lines


CURVES = "group,seed,step,return\n" + "".join(
    f"{group},{seed},{step},{seed + step}\n" for group in "ab" for seed in (0, 1) for step in (0, 10, 20)
)


def test_a_table_with_a_row_per_step_is_reduced_to_one_outcome_per_run(write):
    path = write("curves.csv", CURVES)
    rows, notes, _ = rows_of([path])
    assert rows == [("a", "0", 20.0), ("a", "1", 21.0), ("b", "0", 20.0), ("b", "1", 21.0)]
    assert notes == ("The outcome of a run is its last return, at step 20.",)
    assert rows_of([path], steps=StepRule(at=10))[0][1] == ("a", "1", 11.0)
    assert rows_of([path], steps=StepRule(mean_last=2))[0][1] == ("a", "1", 16.0)


def test_an_outcome_at_a_step_needs_a_column_of_steps(write):
    path = write("plain.csv", "group,seed,outcome\na,0,1\nb,0,2\n")
    with pytest.raises(UsageError, match="--at needs a column of steps; its columns are group, seed, outcome"):
        rows_of([path], steps=StepRule(at=10))


def test_the_only_numeric_column_is_the_outcome(write):
    rows, notes, _ = rows_of([write("scores.csv", "group,seed,note,points\na,0,x,1\nb,0,y,2\n")])
    assert rows == [("a", "0", 1.0), ("b", "0", 2.0)]
    assert notes == ('The outcome is "points".',)


def test_the_only_numeric_column_beside_items_is_the_outcome(write):
    text = "policy,episode,success\n" + "".join(
        f"{group},{episode},{episode % 2}\n" for group in "ab" for episode in (0, 1)
    )
    path = write("rollouts.csv", text)
    outcomes = read_outcomes([path], ReadingRules(names={"group": "policy"}))
    assert outcomes.observations.table.score.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert outcomes.observations.reading == ('The outcome is "success".',)


def test_the_user_is_asked_about_ambiguous_columns_of_groups(write):
    rows, notes, _ = rows_of([write("wide.csv", "seed,old,new\n0,10,11\n1,12,13\n")])
    assert rows == [("old", "0", 10.0), ("new", "0", 11.0), ("old", "1", 12.0), ("new", "1", 13.0)]
    assert "old and new is taken as a group" in notes[0]
    for header, row in [("seed,accuracy,f1", "0,1,2"), ("seed,old,new", "0,1,1000")]:
        with pytest.raises(Unanswered, match="--groups"):
            rows_of([write("wide.csv", f"{header}\n{row}\n")])


def test_groups_and_seeds_are_read_from_the_names_of_columns(write):
    runs = [f"{group}_s{seed}" for group in ("a", "b") for seed in (0, 1)]
    path = write("runs.csv", f"step,{','.join(runs)}\n0,1,2,3,4\n10,5,6,7,8\n")
    rows, notes, shown_lines = rows_of([path])
    assert rows == [("a", "0", 5.0), ("a", "1", 6.0), ("b", "0", 7.0), ("b", "1", 8.0)]
    assert notes == ("The outcome of a run is its last outcome, at step 10.",)
    assert shown_lines == ("Groups and seeds from names: --runs '{group}_s{seed}'", "a: seeds 0-1; b: seeds 0-1")


def test_curves_of_several_metrics_need_a_named_outcome(write):
    header = ",".join(f"{group}-{seed} - {metric}" for metric in ("x", "y") for group in "ab" for seed in (0, 1))
    path = write("curves.csv", f"Step,{header}\n10,1,2,3,4,5,6,7,8\n")
    with pytest.raises(UsageError, match=r"2 numbers per run; say which .* --columns outcome=NAME: x, y$"):
        rows_of([path])
    assert rows_of([path], names={"outcome": "y"})[0][0] == ("a", "0", 5.0)


def test_groups_and_seeds_are_read_from_the_names_of_files(write):
    paths = [
        write(f"{group}-{seed}.csv", f"step,loss\n0,9\n1,{seed}\n") for group in ("big", "tiny") for seed in (0, 1)
    ]
    rows, notes, _ = rows_of(paths)
    assert rows == [("big", "0", 0.0), ("big", "1", 1.0), ("tiny", "0", 0.0), ("tiny", "1", 1.0)]
    assert notes == ("The outcome of a run is its last loss, at step 1.",)


def test_the_name_of_a_file_gives_the_group_or_the_seed(write):
    by_group = [write(f"{group}.csv", "seed,score\n0,1\n1,2\n") for group in ("big", "tiny")]
    assert rows_of(by_group)[0] == [("big", "0", 1.0), ("big", "1", 2.0), ("tiny", "0", 1.0), ("tiny", "1", 2.0)]
    by_seed = [write(f"seed{seed}.csv", "group,score\na,1\nb,2\n") for seed in (0, 1)]
    assert rows_of(by_seed)[0] == [("a", "0", 1.0), ("b", "0", 2.0), ("a", "1", 1.0), ("b", "1", 2.0)]


def test_steps_of_several_files_are_reduced_by_one_rule(write):
    long_files = [write(f"{group}.csv", "seed,step,score\n0,1,1\n0,2,3\n1,1,2\n1,2,4\n") for group in ("big", "tiny")]
    rows, notes, _ = rows_of(long_files)
    assert rows == [("big", "0", 3.0), ("big", "1", 4.0), ("tiny", "0", 3.0), ("tiny", "1", 4.0)]
    assert notes == ("The outcome of a run is its last score, at step 2.",)


def test_a_run_with_the_state_crashed_is_lost(write):
    text = csv_text([{"group": group, "seed": seed, "outcome": 1.0} for group in "ab" for seed in range(2)])
    path = write("runs.csv", text.replace("outcome", "outcome,State").replace("1.0\n", "1.0,finished\n"))
    path.write_text(path.read_text().replace("finished", "crashed", 1))
    assert rows_of([path])[0][0] == ("a", "0", None)


def test_a_single_run_is_refused_as_a_comparison(write):
    text = '#{"t_start": 1.5, "env_id": "X"}\nr,l,t\n1.0,100,1.0\n'
    with pytest.raises(UsageError, match="which has one run; name the files of all runs"):
        rows_of([write("a-0/monitor.csv", text)])


def test_two_files_of_the_same_run_are_refused(write):
    paths = [
        write(f"{folder}/a-{seed}.csv", "x\n1\n".replace("x\n", "x,y\n").replace("1\n", "1,2\n"))
        for folder in ("p", "q")
        for seed in (0, 1)
    ]
    with pytest.raises(UsageError, match=r"p/a-0.csv and .*q/a-0.csv are both a, seed 0; --runs can tell them apart"):
        rows_of(paths, runs="{group}-{seed}", names={"outcome": "x"})


def test_the_column_of_text_that_has_the_control_is_suggested_as_that_of_the_groups(write):
    path = write("questions.csv", "checkpoint,question,epoch,correct\nstep4,0,0,1\nstep8,0,0,0\n")
    expected = r"--columns group=checkpoint,outcome=NAME \(step4 is in column checkpoint\)"
    with pytest.raises(UsageError, match=expected):
        rows_of([path], control="step4")


def test_no_column_is_suggested_for_a_control_that_two_columns_of_text_have(write):
    path = write("questions.csv", "base,tuned,score,correct\na,a,2,1\na,b,4,0\n")
    with pytest.raises(UsageError, match="--columns group=NAME,outcome=NAME,seed=NAME"):
        rows_of([path], control="a")


def test_columns_are_suggested_as_groups_only_if_one_of_them_is_the_control(write):
    path = write("wide.csv", "seed,accuracy,f1\n0,1,2\n")
    with pytest.raises(Unanswered, match="--groups"):
        rows_of([path], control="f1")
    with pytest.raises(UsageError, match="--columns group=NAME,outcome=NAME"):
        rows_of([path], control="old")
