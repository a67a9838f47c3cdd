"""A column with a value per row is refused as the column of groups."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.external_table import observations_of

SEEDS = [str(seed) for seed in range(8)]


def read(columns, names):
    return observations_of("runs.csv", columns, range(2, 2 + len(columns["seed"])), names)


def test_a_group_column_with_a_value_per_row_is_refused():
    wide_table = {"seed": SEEDS, "baseline": [f"{306.2 + 1.7 * n}" for n in range(8)], "tuned": ["347.5"] * 8}
    with pytest.raises(UsageError, match=r"column baseline: it would make nearly .* \(8 groups in"):
        read(wide_table, {"group": "baseline", "outcome": "tuned"})
    wide_table["baseline"][1] = wide_table["baseline"][0]
    with pytest.raises(UsageError, match="7 groups in 8 rows"):
        read(wide_table, {"group": "baseline", "outcome": "tuned"})


@pytest.mark.parametrize("groups", [["a", "b"], ["a", "a", "b", "b", "c"], ["a"] * 5 + ["b", "c", "d"]])
def test_a_group_column_with_a_few_rows_per_group_is_accepted(groups):
    columns = {"seed": SEEDS[: len(groups)], "algo": groups, "return": ["1"] * len(groups)}
    assert len(read(columns, {"group": "algo", "outcome": "return"}).rows) == len(groups)


def test_a_column_named_group_is_accepted_with_one_run_per_group():
    """One run of each setting: the answer says that no group has enough seeds."""
    columns = {"seed": ["0"] * 5, "group": list("abcde"), "outcome": ["1"] * 5}
    assert len(read(columns, {}).groups) == 5
