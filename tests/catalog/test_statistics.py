"""The contract of every file in esper_ab/stats/descriptive: laws for any statistic of paired outcomes."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.descriptive import statistics

NAMES = tuple(statistics())
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "verdict.md").read_text()
EXCHANGED = {
    "low": "high",
    "high": "low",
    "wins": "losses",
    "losses": "wins",
    "skewness_a": "skewness_b",
    "skewness_b": "skewness_a",
    "a": "b",
    "b": "a",
    "low_a": "low_b",
    "low_b": "low_a",
    "high_a": "high_b",
    "high_b": "high_a",
}
DRAWN = {"low", "high", "low_a", "high_a", "low_b", "high_b", "p"}  # numbers that may depend on the generator
OUTCOMES = {"iqm_groups": "a b low_a high_a low_b high_b", "profile": "thresholds"}  # numbers that move with a shift
# Multiples of 1/64 below 100 %: sums and shifts by whole points are exact, so that equal stays equal.
accuracies = st.integers(0, 6400).map(lambda number: number / 64)
samples = st.lists(st.tuples(accuracies, accuracies), min_size=1, max_size=12)
Rows = Sequence[tuple[float, float]]


@pytest.fixture(params=NAMES, scope="module")
def statistic(request: pytest.FixtureRequest) -> Statistic[Any]:
    return statistics()[request.param]


def compute(statistic: Statistic[Any], rows: Rows, rng_seed: int = 3) -> Any:
    return statistic.of([a for a, _ in rows], [b for _, b in rows], rng_seed)


def numbers(result: Any) -> dict[str, Any]:
    """Every number of a result, by the name of its field; {} for None."""
    return {} if result is None else dict(_flat(msgspec.to_builtins(result)))


def _flat(built: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number of a nested result with its path of fields and list indices, such as "a.low.3"."""
    if not isinstance(built, Mapping | list | tuple):
        yield name, built
        return
    for key, value in built.items() if isinstance(built, Mapping) else enumerate(built):
        yield from _flat(value, f"{name}.{key}" if name else str(key))


def compare_numbers(
    statistic: Statistic[Any], rows: Rows, other_rows: Rows
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield each number of `rows` with all numbers of `other_rows`; the statistic is defined for both or neither."""
    first_result = compute(statistic, rows)
    second_result = compute(statistic, other_rows)
    assert (first_result is None) == (second_result is None)
    for name, value in numbers(first_result).items():
        yield name, value, numbers(second_result)


def close(x: Any, y: Any) -> bool:
    return x is y if None in (x, y) else math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-9)


def has_spread(rows: Rows) -> bool:
    """True if no spread is so small that rounding decides whether a statistic is defined."""
    a, b = np.array(rows).T
    return len(rows) > 1 and all(np.ptp(values) > 0.1 or np.ptp(values) == 0.0 for values in (a, b, a - b))


def context(**changes: Any) -> ComparisonContext:
    usual_context = {
        "a": "shaped",
        "b": "wait",
        "pairs": 6,
        "alpha": 0.05,
        "bound": 0.05,
        "claimed": False,
        "undecided": False,
    }
    return ComparisonContext(**(usual_context | changes))


def test_every_statistic_has_a_unique_name_label_and_place() -> None:
    assert NAMES
    assert all(isinstance(statistic, Statistic) for statistic in statistics().values())
    assert len({statistic.label for statistic in statistics().values()}) == len(NAMES)
    assert len({(statistic.kind, statistic.place) for statistic in statistics().values()}) == len(NAMES)
    assert not set(NAMES) & {field.name for field in fields(Comparison)}, "its name is a key of verdict.json"


@settings(max_examples=40)
@given(rows=samples)
@example(rows=[])
@example(rows=[(70.0, 60.0)] * 6)
@example(rows=[(0.0, 100.0), (100.0, 0.0)])
def test_a_statistic_is_shown_as_finite_numbers_in_one_line(statistic: Statistic[Any], rows: Rows) -> None:
    result = compute(statistic, rows)
    if result is None:
        return
    assert len(rows) > 1
    assert all(math.isfinite(value) for value in numbers(result).values() if value is not None)
    for comparison in (context(pairs=len(rows)), context(claimed=True), context(undecided=True)):
        texts = [statistic.show(result, comparison), *statistic.caveats(result, comparison)]
        assert not [text for text in texts if re.search(r"\n|\bnan\b|\binf\b|None", text)]
        assert all(text.endswith(".") for text in texts[1:])


@settings(max_examples=40)
@given(rows=samples)
def test_swapping_the_groups_mirrors_every_number(statistic: Statistic[Any], rows: Rows) -> None:
    """A number x becomes x, -x, 1 - x or, if it counts comparisons of runs, n^2 - x."""
    assume(has_spread(rows))
    for name, value, swapped_numbers in compare_numbers(statistic, rows, [(b, a) for a, b in rows]):
        first_key, *path = name.split(".")
        mirrored_value = swapped_numbers[".".join((EXCHANGED.get(first_key, first_key), *path))]
        allowed_values = [swapped_numbers[name], mirrored_value]
        if None not in (mirrored_value, value):
            allowed_values += [-mirrored_value, 1 - mirrored_value, len(rows) ** 2 - mirrored_value]
        assert any(close(value, number) for number in allowed_values), name


@settings(max_examples=40)
@given(rows=samples, points=st.integers(1, 500))
def test_adding_a_constant_to_all_outcomes_changes_no_difference(
    statistic: Statistic[Any], rows: Rows, points: int
) -> None:
    assume(has_spread(rows))
    moving_names = next((names.split() for key, names in OUTCOMES.items() if statistics()[key] is statistic), [])
    for name, value, moved_numbers in compare_numbers(statistic, rows, [(a + points, b + points) for a, b in rows]):
        shift = points if name.split(".")[0] in moving_names else 0
        assert close(value + shift if shift else value, moved_numbers[name]), name


@settings(max_examples=40)
@given(rows=samples, random=st.randoms(use_true_random=False))
def test_the_order_of_pairs_affects_only_resampled_numbers(
    statistic: Statistic[Any], rows: Rows, random: Random
) -> None:
    """Bootstrap limits and p of sampled permutations are random and also depend on the generator."""
    assume(has_spread(rows))
    shuffled_rows = list(rows)
    random.shuffle(shuffled_rows)
    reseeded_numbers = numbers(compute(statistic, rows, rng_seed=4))
    for name, value, reordered_numbers in compare_numbers(statistic, rows, shuffled_rows):
        is_drawn = name in DRAWN and _uses_generator(statistic)
        assert is_drawn or value == reseeded_numbers[name], name
        assert is_drawn or close(value, reordered_numbers[name]), name


def test_bootstrap_limits_vary_little_between_generators(statistic: Statistic[Any]) -> None:
    rng = np.random.default_rng(2)
    b = rng.normal(70, 2, 16)
    rows = list(zip((b + rng.normal(2, 3, 16)).tolist(), b.tolist(), strict=True))
    original_numbers = numbers(compute(statistic, rows))
    for result in (compute(statistic, rows, rng_seed=4), compute(statistic, rows[::-1])):
        changed_numbers = numbers(result)
        for name, value in original_numbers.items():
            assert (
                value is changed_numbers[name]
                or abs(value - changed_numbers[name]) <= _tolerance(name, original_numbers) + 1e-9
            ), name


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_page_documents_the_key_and_fields_of_a_statistic(name: str) -> None:
    result = compute(statistics()[name], [(70.0 + r % 3, 68.0 + r % 5) for r in range(9)])
    assert result is not None
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1]]
    assert len(rows) == 1
    field_names = {part for name in numbers(result) for part in name.split(".") if part and not part.isdigit()}
    assert field_names <= set(re.findall(r"`(\w+)`", rows[0]))


def _uses_generator(statistic: Statistic[Any]) -> bool:
    """True if the statistic depends on the generator."""
    rows = [(70.0 + (7 * r) % 11 / 3, 70.0 + (5 * r) % 7 / 3) for r in range(12)]
    return bool(compute(statistic, rows, 3) != compute(statistic, rows, 4))


def _tolerance(name: str, result: Mapping[str, Any]) -> float:
    """Return the tolerated change with the generator: a twentieth of the interval, or 0.01 for a sampled p."""
    side = name[-2:] if name.endswith(("_a", "_b")) else ""
    low = result.get(f"low{side}")
    high = result.get(f"high{side}")
    if low is not None and high is not None:
        return 0.05 * (high - low)
    return 0.01 if name == "p" and not result["exact"] else 0.0
