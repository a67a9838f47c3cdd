"""Fast checks of numbers agree with plain checks, even where a sum of squares overflows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from esper_ab.contracts.measures import LARGEST_OUTCOME
from workers.arrays import all_finite, flaw

SHAPES = arrays.array_shapes(max_dims=2, max_side=5)


@given(st.sampled_from([np.float32, np.float64]).flatmap(lambda kind: arrays.arrays(kind, SHAPES)))
def test_all_finite_checks_every_number(values: np.ndarray) -> None:
    assert all_finite(values) is bool(np.isfinite(values).all())


@given(arrays.arrays(np.float64, SHAPES, elements=st.floats() | st.sampled_from([1e40, -1e40, 1.1e40, 1e19, 1e21])))
def test_finite_numbers_up_to_the_largest_outcome_are_accepted(values: np.ndarray) -> None:
    complaint = f"is beyond {LARGEST_OUTCOME:g}" if np.isfinite(values).all() else "is not finite"
    assert flaw(values) == ("" if (np.abs(values) <= LARGEST_OUTCOME).all() else complaint)


@pytest.mark.parametrize("huge_number", [np.float32(3e38), 1e300])
def test_all_finite_accepts_numbers_with_overflowing_squares(huge_number: float) -> None:
    assert all_finite(np.full(3, huge_number))
