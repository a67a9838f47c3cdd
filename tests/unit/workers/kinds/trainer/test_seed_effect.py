import math
import random
from collections.abc import Sequence

import pytest

from workers.kinds.trainer.seed_effect import (
    Numbers,
    is_in_doubt,
    outcome_repeats,
    refuse_no_effect,
    relative_difference,
)

OUTCOME = "acc"


def runs(*outcomes: float, **metrics: Sequence[float]) -> list[Numbers]:
    return [
        {OUTCOME: (outcome,), **{name: (values[index],) for name, values in metrics.items()}}
        for index, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("values", "distance"),
    [
        ((2.0, 2.0), 0.0),
        ((0.0, 0.0), 0.0),
        ((math.nan, math.nan), 0.0),
        ((math.nan, 1.0), math.inf),
        ((-100.0, -99.0), 0.01),
        ((1.0, 2.0, 4.0), 0.75),
        ((-1.0, 1.0), 2.0),
    ],
)
def test_the_difference_of_two_runs_is_relative_to_their_size(values: Sequence[float], distance: float) -> None:
    assert relative_difference(runs(*values), OUTCOME) == distance


@pytest.mark.parametrize(
    ("seeds", "repeats"),
    [
        (runs(60.0, 61.0), runs(60.0, 60.5)),  # an evaluation that is not seeded
        (runs(60.0, 60.0001), runs(60.0, 60.0)),  # a small effect of a seed that repeats to the bit
        (runs(60.0, 60.0001), runs(60.0, 60.000001)),  # or nearly
        (runs(1.0, 1.0, loss=(0.3, 0.4)), runs(1.0, 1.0, loss=(0.3, 0.3))),  # both reach the best possible outcome
        (runs(1.0, math.nan), runs(1.0, 1.0)),
        (runs(1.0, 1.0, 1.0), runs(1.0, 1.0)),  # successes, which few seeds often have in common
        (runs(0.0, 0.0, 0.0, solved=(1.0, 1.0, 1.0)), runs(0.0, 0.0, solved=(1.0, 1.0))),
    ],
)
def test_a_seed_that_changes_results_is_accepted(seeds: list[Numbers], repeats: list[Numbers]) -> None:
    assert not is_in_doubt(seeds, repeats, OUTCOME)
    refuse_no_effect(seeds, repeats, OUTCOME, "")


@pytest.mark.parametrize(
    ("seeds", "repeats", "complaint"),
    [
        (runs(61.0, 61.0), runs(61.0, 61.0), r"2 seeds gave the same result \(acc 61\), so every seed.* run; read it"),
        (runs(1.0, 1.0, loss=(0.3, 0.3)), runs(1.0, 1.0, loss=(0.3, 0.3)), "2 seeds gave the same result"),
        (runs(61.0, 61.0, speed=(90.0, 80.0)), runs(61.0, 61.0, speed=(90.0, 85.0)), "2 seeds gave the same result"),
        (
            runs(60.0, 60.001),
            runs(60.0, 60.0005),
            r"only by rounding \(acc 60 to 60.001, and 60 to 60.0005\), so every",
        ),
    ],
)
def test_a_seed_without_effect_is_refused(seeds: list[Numbers], repeats: list[Numbers], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        refuse_no_effect(seeds, repeats, OUTCOME, "read it")


def test_nearly_all_trainers_that_ignore_their_seed_are_detected_despite_rounding() -> None:
    """Sums of single-precision numbers in another order; three seeds, and one seed three times."""
    doubtful_count = 0
    rng = random.Random(0)
    for _ in range(1000):
        numbers = [60.0 + rng.gauss(0.0, 1e-4) for _ in range(5)]
        doubtful_count += is_in_doubt(runs(*numbers[:3]), runs(numbers[0], *numbers[3:]), OUTCOME)
    assert doubtful_count > 980


@pytest.mark.parametrize(("values", "repeats"), [((60.0, 60.000001), True), ((60.0, 60.5), False)])
def test_an_outcome_repeats_if_runs_of_one_seed_differ_by_rounding_only(values: Sequence[float], repeats: bool) -> None:
    assert outcome_repeats(runs(*values), OUTCOME) == repeats
