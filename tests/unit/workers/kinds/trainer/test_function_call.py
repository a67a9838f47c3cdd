import pytest

from workers.kinds.trainer.function_call import Called, thinned


def curve(*values: float) -> list[dict[str, float]]:
    return [{"score": value} for value in values]


@pytest.mark.parametrize(
    ("whole", "points", "expected"),
    [
        (curve(1, 2, 3), 3, curve(1, 2, 3)),
        (curve(1, 2, 3, 4, 5, 6), 3, curve(2, 4, 6)),
        (curve(1, 2, 3, 4, 5), 2, curve(3, 5)),
        (curve(1, 2), 4, curve(1, 1, 2, 2)),
        (curve(7), 3, curve(7, 7, 7)),
    ],
)
def test_a_curve_has_the_planned_points_and_keeps_its_last(whole, points, expected) -> None:
    assert thinned(whole, points) == expected


def test_a_plain_number_is_named_like_the_outcome() -> None:
    assert Called(points=({"": "2.5"}, {"": "nan"})).curve("train", "score")[0] == {"score": 2.5}


def test_an_outcome_that_a_dict_does_not_have_is_refused_with_the_names_that_it_has() -> None:
    with pytest.raises(
        ValueError, match=r"^train returned 'loss' and 'score'; say which one decides, as higher or lower$"
    ):
        Called(points=({"loss": "1", "score": "2"},)).curve("train", "outcome")
