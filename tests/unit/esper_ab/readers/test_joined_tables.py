"""Several files that become one table: which files have the outcomes, and what names their runs."""

import pytest

from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.readers.joined_tables import join_tables
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.source_files import find_files
from esper_ab.readers.steps import StepRule

CURVE = "step,score\n0,1\n10,{last}\n"


@pytest.fixture
def join(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def joined(files, **rules):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        paths = [tmp_path / name for name in files]
        return join_tables(paths, find_files(paths)[0], ReadingRules(**rules))

    return joined


def rows(table):
    return [*zip(*(table.columns[name] for name in ("group", "seed", table.metric)), strict=True)]


def test_each_file_is_a_run_that_its_path_names(join):
    files = {f"{group}-{seed}.csv": CURVE.format(last=seed) for group in ("new", "old") for seed in (1, 2)}
    table = join(files)
    assert rows(table) == [("new", "1", 1.0), ("new", "2", 2.0), ("old", "1", 1.0), ("old", "2", 2.0)]
    assert table.reading == ("The outcome of a run is its last score, at step 10.",)
    assert table.row_numbers == range(1, 5)
    assert "4 files from " in table.source


def test_the_outcome_may_be_taken_at_a_step(join):
    files = {f"{group}-{seed}.csv": CURVE.format(last=7) for group in ("new", "old") for seed in (1, 2)}
    assert [row[2] for row in rows(join(files, steps=StepRule(at=0)))] == [1.0] * 4


def test_several_monitor_files_of_a_folder_are_one_run(join):
    """Stable-Baselines3 writes a file per environment; their episodes count in the order of their times."""
    first = '#{"t_start": 0.0}\nr,l,t\n1.0,5,1.0\n5.0,5,9.0\n'
    second = '#{"t_start": 0.0}\nr,l,t\n3.0,5,2.0\n'
    files = {}
    for folder in ("new/1", "new/2", "old/1", "old/2"):
        files |= {f"{folder}/0.monitor.csv": first, f"{folder}/1.monitor.csv": second}
    table = join(files, steps=StepRule(mean_last=3))
    assert [row[:2] for row in rows(table)] == [("new", "1"), ("new", "2"), ("old", "1"), ("old", "2")]
    assert [row[2] for row in rows(table)] == [3.0] * 4


def test_only_files_with_the_outcome_are_read(join):
    files = {f"{group}-{seed}.csv": CURVE.format(last=seed) for group in ("new", "old") for seed in (1, 2)}
    notes = {f"losses/{name}": "step,loss\n0,1\n" for name in files}
    assert rows(join({**files, **notes}, names={"outcome": "score"})) == rows(join(files))


def test_files_of_a_special_format_are_preferred_to_plain_tables(join):
    monitor = '#{"t_start": 0.0}\nr,l,t\n1.0,5,1.0\n'
    files = {}
    for folder in ("new/1", "new/2", "old/1", "old/2"):
        files |= {f"{folder}/monitor.csv": monitor, f"{folder}/progress.csv": CURVE.format(last=2)}
    table = join(files)
    assert [row[2] for row in rows(table)] == [1.0] * 4
    note = "The outcomes are those of SB3 monitor.csv files; 4 other files (a CSV file) are not used."
    assert table.notes == (note,)


def test_the_note_on_unused_files_says_file_once(join):
    curves = {f"{group}-{seed}.csv": CURVE.format(last=seed) for group in ("new", "old") for seed in (1, 2)}
    table = join({**curves, "a.json": '{"score": 1}'})
    assert table.notes == ("The outcomes are those of CSV files; 1 other file (a JSON file) is not used.",)


BROKEN = "a,b\n1,2\n1,2,3\n"


def test_tables_beside_files_of_a_special_format_are_not_even_read(join, tmp_path):
    monitor = '#{"t_start": 0.0}\nr,l,t\n1.0,5,1.0\n'
    files = {f"{run}/monitor.csv": monitor for run in ("new/1", "new/2", "old/1", "old/2")}
    assert [row[2] for row in rows(join(files | {"notes.csv": BROKEN}))] == [1.0] * 4


def test_tables_beside_files_of_a_special_format_are_read_if_only_they_have_the_outcome(join):
    monitor = '#{"t_start": 0.0}\nr,l,t\n1.0,5,1.0\n'
    files = {}
    for folder in ("new/1", "new/2", "old/1", "old/2"):
        files |= {f"{folder}/monitor.csv": monitor, f"{folder}/success.csv": CURVE.format(last=2)}
    assert [row[2] for row in rows(join(files, names={"outcome": "score"}))] == [2.0] * 4


def test_a_broken_table_in_a_folder_is_named_with_how_to_leave_it_out(join, tmp_path):
    files = {f"{group}-{seed}.csv": CURVE.format(last=seed) for group in ("new", "old") for seed in (1, 2)}
    join(files)
    (tmp_path / "notes.csv").write_text(BROKEN)
    words = r"notes.csv, row 3, .*; if it has no outcomes, put a dot before its name, or name the files that have some"
    with pytest.raises(UsageError, match=words):
        join_tables([tmp_path], find_files([tmp_path])[0], ReadingRules())
    with pytest.raises(UsageError, match=r"the row has 3 cells, the header 2$"):
        join({**files, "notes.csv": BROKEN})


def test_a_column_of_groups_that_no_file_has_is_refused_with_a_suggestion(join):
    files = {f"{name}.csv": "seed,algo,score\n1,new,1\n1,old,2\n" for name in ("a", "b")}
    with pytest.raises(UsageError, match=r"no file has a column 'alg'; did you mean algo\?"):
        join(files, names={"group": "alg"})


def test_a_column_that_no_file_has_is_refused_with_a_suggestion(join):
    with pytest.raises(UsageError, match=r"no file has a column 'scor'; did you mean score\?"):
        join({"new-1.csv": CURVE.format(last=1), "old-1.csv": CURVE.format(last=2)}, names={"outcome": "scor"})


def test_two_files_of_one_run_are_refused(join):
    files = {name: CURVE.format(last=1) for name in ("p/new-1.csv", "q/new-1.csv", "q/old-1.csv")}
    with pytest.raises(UsageError, match=r"p/new-1.csv and .*q/new-1.csv are both new, seed 1; --runs can tell them"):
        join(files, runs="{group}-{seed}")


def test_tables_with_columns_of_runs_are_joined_row_by_row(join):
    text = "seed,score\n1,{}\n2,{}\n"
    table = join({"new.csv": text.format(5, 6), "old.csv": text.format(3, 4)})
    assert rows(table) == [("new", "1", 5.0), ("new", "2", 6.0), ("old", "1", 3.0), ("old", "2", 4.0)]


def test_the_user_is_asked_whether_episodes_are_an_evaluation(join):
    files = {f"{group}.csv": "episode,success\n0,1\n1,0\n" for group in ("new", "old")}
    with pytest.raises(Unanswered, match="an evaluation of the finished run, or its training"):
        join(files)


def test_the_notes_of_equal_files_are_kept_once(join):
    files = {f"{group}-{seed}.csv": "step;score\n0;1,5\n" for group in ("new", "old") for seed in (1, 2)}
    assert len(join(files).notes) == 1
