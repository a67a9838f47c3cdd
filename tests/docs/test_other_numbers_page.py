"""docs/other-numbers.md: its table and its Python, as they stand."""

import re
import tomllib
from pathlib import Path

from esper_ab.readers.external_table import COLUMNS, read_csv

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "other-numbers.md").read_text()


def _block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(found)


def test_the_table_can_be_read(tmp_path):
    file = tmp_path / "results.csv"
    file.write_text(_block("csv"))
    assert [row.value for row in read_csv(file).rows] == [71.25, 69.5, 74.0, None]
    assert all(f"`{column}`" in PAGE for column in COLUMNS)


def test_the_example_asks_for_what_is_kept_beside_it():
    files = DOCS / "examples" / "screening.toml", DOCS / "examples" / "screening-digits" / "experiment.toml"
    asked, kept = (tomllib.loads(file.read_text()) for file in files)
    assert asked == {key: kept[key] for key in asked}


def test_the_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(_block("python"), "other-numbers.md", "exec"), {})
    assert "The next look is after 10 seeds" in capsys.readouterr().out
    assert (tmp_path / "plan.json").exists()
