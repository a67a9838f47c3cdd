import pytest

from esper_ab.readers.plain_groups import plain_groups

SEEDS = ["0", "1", "2"]
OLD = ["70.1", "71.9", "69.5"]
NEW = ["72.3", "", "73.0"]


def test_columns_of_numbers_beside_one_of_seeds_are_groups():
    assert plain_groups({"seed": SEEDS, "old": OLD, "new": NEW}) == ("old", "new")


@pytest.mark.parametrize(
    "columns",
    [
        {"old": OLD, "new": NEW},
        {"seed": SEEDS, "pair": SEEDS, "old": OLD, "new": NEW},
        {"seed": SEEDS, "old": OLD},
        {"seed": SEEDS} | {f"g{number}": OLD for number in range(9)},
        {"seed": SEEDS, "old": OLD, "val_loss": NEW},
        {"seed": SEEDS, "old": OLD, "valLoss": NEW},
        {"seed": SEEDS, "old": OLD, "step": NEW},
        {"seed": SEEDS, "old": OLD, "12": NEW},
        {"seed": SEEDS, "old": OLD, "outcome": NEW},
        {"seed": SEEDS, "old": OLD, "new": ["a", "b", "c"]},
        {"seed": SEEDS, "old": OLD, "new": ["7000", "7190", "6950"]},
        {"seed": SEEDS, "old": OLD, "new": ["", "", ""]},
    ],
)
def test_other_tables_have_no_plain_groups(columns):
    assert plain_groups(columns) == ()


def test_groups_far_apart_are_of_one_scale_if_their_means_differ_by_less_than_half_of_their_size():
    assert plain_groups({"seed": SEEDS, "old": ["10.0", "10.1", "10.2"], "new": ["15.0", "15.1", "15.2"]})
