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
def test_a_curve_is_thinned_to_the_planned_number_of_points(whole, points, expected) -> None:
    assert thinned(whole, points) == expected


def test_a_returned_number_has_the_name_of_the_outcome() -> None:
    assert Called(points=({"": "2.5"}, {"": "nan"})).curve("train", "score")[0] == {"score": 2.5}


def test_the_refusal_of_a_missing_outcome_lists_the_returned_names() -> None:
    with pytest.raises(
        ValueError, match=r"^train returned 'loss' and 'score'; say which one decides, as higher or lower$"
    ):
        Called(points=({"loss": "1", "score": "2"},)).curve("train", "outcome")


@pytest.mark.parametrize(
    ("outcome", "advice"),
    [("acuracy", "did you mean accuracy?"), ("reward", "name one of these as higher or lower")],
)
def test_a_named_outcome_that_was_not_returned_is_named_in_the_refusal(outcome: str, advice: str) -> None:
    with pytest.raises(ValueError, match=r"^train returned no") as caught:
        Called(points=({"accuracy": "1", "loss": "2"},)).curve("train", outcome)
    assert str(caught.value) == f"train returned no '{outcome}', but 'accuracy' and 'loss'; {advice}"
