"""Different spellings of a seed are the same seed, and the answer mentions it."""

import pytest
from support.outcomes.csv_outcomes import drawn, rows

from esper_ab.api.external import compare_outcomes, design_comparison, judge_outcomes
from esper_ab.contracts.errors import UsageError
from esper_ab.readers.csv_file import read_csv
from esper_ab.readers.external_table import observations_of


def _written(table, spelling):
    """The rows, in which the seeds of `old` are spelled by `spelling`."""
    return [row if row["group"] == "new" else row | {"seed": spelling(row["seed"])} for row in table]


def _file(path, table):
    lines = (f"{row['group']},{row['seed']},{row['outcome']}" for row in table)
    path.write_text("\n".join(("group,seed,outcome", *lines, "")))
    return path


SPELLINGS = ["{:02}", "{}.0", "{}.", "{:03}.00", "+{}"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_numbers_in_different_spellings_are_the_same_seed(tmp_path, spelling):
    table = _written(rows(*drawn(9, 3.0)), spelling.format)
    answer = compare_outcomes(_file(tmp_path / "f.csv", table), margin=1)
    ((pairs, note),) = ((comparison.pairs, answer.notes[0]) for comparison in answer.comparisons)
    assert len(pairs) == 9
    assert note == f"0 and {spelling.format(0)} are one seed, and likewise 8 more."
    frame = {name: [row[name] for row in table] for name in table[0]}
    assert len(compare_outcomes(frame, margin=1).comparisons[0].pairs) == 9


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_results_may_spell_a_planned_seed_differently(tmp_path, spelling):
    plan = design_comparison(["new", "old"], 9, margin=1)
    table = [row | {"seed": spelling.format(row["seed"])} for row in rows(*drawn(9, 3.0))]
    answer = judge_outcomes(plan, _file(tmp_path / "f.csv", table))
    assert len(answer.comparisons[0].pairs) == 9
    assert answer.notes[0] == f"Seed {spelling.format(0)} is the plan's 0, and likewise 8 more."
    assert answer.departures == ()


def test_a_seed_with_only_one_spelling_keeps_it(tmp_path):
    observations = read_csv(_file(tmp_path / "f.csv", _written(rows([1.0], [2.0]), "{:03}".format)[1:]))
    assert (observations.replicates, observations.notes) == (("000",), ())
    names = {"group": ["a", "b", "a", "b"], "seed": ["1e2", "100", "0x7", "7"], "outcome": [1, 2, 3, 4]}
    assert observations_of("f", names, range(4)).notes == ()


def test_a_group_with_two_spellings_of_one_seed_is_refused():
    columns = {"group": ["a", "a"], "seed": ["7", "07"], "outcome": ["1", "2"]}
    with pytest.raises(UsageError, match="row 3, column seed: group a also has seed 7 in row 2"):
        observations_of("f", columns, (2, 3))
