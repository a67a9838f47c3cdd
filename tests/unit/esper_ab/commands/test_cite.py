"""A citation, and rows of a LaTeX table with any names of groups."""

from click.testing import CliRunner
from support.journals.ready_journals import write
from support.journals.synthetic import Shape, Synthetic

from esper_ab.commands.cite import command


def test_cite_without_an_experiment_prints_a_citation():
    output = CliRunner().invoke(command, [], catch_exceptions=False).output
    assert output.startswith("@software{esper_ab,\n")
    assert output.endswith("}\n")


def test_cite_prints_a_latex_row_for_a_comparison(tmp_path):
    groups = {"lr_1=a": Shape(accuracy=74.0), "b": Shape(accuracy=69.0, mode="simplified")}
    result = CliRunner().invoke(command, [str(write(tmp_path / "x", Synthetic(groups=groups).events()))])
    (row,) = [line for line in result.output.splitlines() if "&" in line]
    names, difference, interval, pairs, verdict = row.removesuffix(r" \\").split(" & ")
    assert (names, pairs, verdict) == (r"lr\_1=a $-$ b", "6", "BETTER")
    low, high = interval.strip("$[]").split(", ")
    assert float(low) < float(difference.strip("$")) < float(high)
