"""Exported W&B charts: each column becomes the rows of a run."""

from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import series_of

HEAD = '"Step","a-s0 - eval/return","a-s0 - eval/return__MIN","a-s0 - eval/return__MAX","b - x - eval/return",'
TABLE = (
    HEAD
    + '"b - x - eval/return__MIN","b - x - eval/return__MAX"\n"0","1","1","1","","",""\n"5","2","2","{}","3","3","3"\n'
)


def test_each_curve_of_a_wandb_chart_is_read_as_a_run(tmp_path):
    file = tmp_path / "export.csv"
    file.write_text(TABLE.format(2))
    (table,) = read_file(file)
    assert (table.format, table.outcomes) == ("the curves of a W&B chart", ("eval/return",))
    assert table.roles == {"run": "run", "step": "Step"}
    assert list(table.columns["run"]) == ["a-s0", "a-s0", "b - x", "b - x"]
    assert series_of(table, "eval/return").values.tolist() == [1, 2, 3]
    assert (list(table.row_numbers), table.notes) == ([2, 3, 2, 3], ())


def test_a_note_warns_that_a_chart_shows_means_of_several_points(tmp_path):
    file = tmp_path / "export.csv"
    file.write_text(TABLE.format(9))
    (note,) = read_file(file)[0].notes
    assert note.startswith("2 curves: at some steps W&B drew the mean of several points or runs")


def test_each_metric_of_a_wandb_chart_has_a_column(tmp_path):
    names = [f"{run} - {metric}{end}" for run in "ab" for metric in ("x", "y") for end in ("", "__MIN", "__MAX")]
    file = tmp_path / "export.csv"
    file.write_text(",".join(["global_step", *names]) + "\n" + ",".join(map(str, range(13))) + "\n")
    (table,) = read_file(file)
    assert (table.columns["x"], table.columns["y"]) == (["1", "7"], ["4", "10"])
