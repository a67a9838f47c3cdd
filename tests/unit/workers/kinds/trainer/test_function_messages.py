import pytest

from workers.kinds.trainer.function_messages import Called


def test_a_returned_number_has_the_name_of_the_outcome() -> None:
    assert Called(points=({"": "2.5"}, {"": "nan"})).curve("train", "score")[0] == {"score": 2.5}


def test_the_refusal_of_a_missing_outcome_lists_the_returned_names() -> None:
    with pytest.raises(
        ValueError, match=r"^train returned 'loss' and 'score'; say which one decides: --higher NAME or --lower "
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
