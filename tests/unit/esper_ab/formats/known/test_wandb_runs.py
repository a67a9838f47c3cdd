"""Exported W&B tables of runs."""

import pytest

from esper_ab.formats.known import format_of, read_file


def test_the_state_of_a_wandb_run_is_read(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text('"Name","State","algo","eval/return"\n"x0","finished","a","1.5"\n"x1","crashed","a",""\n')
    (table,) = read_file(file)
    assert (table.format, table.roles) == ("a W&B table of runs", {"run": "Name", "state": "State"})
    assert table.column("state") == ["finished", "crashed"]


@pytest.mark.parametrize("text", ["Name,State,x\na,Ohio,1\n", "Name,State\n", "Name,x\na,1\n"])
def test_other_tables_with_the_same_column_names_are_plain_csv_files(tmp_path, text):
    file = tmp_path / "runs.csv"
    file.write_text(text)
    file_format = format_of(file)
    assert file_format is not None
    assert file_format.name == "a CSV file"
