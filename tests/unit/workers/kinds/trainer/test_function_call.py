import pytest

from workers.kinds.trainer.function_call import thinned


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
