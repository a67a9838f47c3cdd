import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from workers.kinds.trainer.function_points import read_points


@pytest.mark.parametrize(
    "returned", [2.5, np.float32(2.5), np.array(2.5), torch.tensor(2.5), Fraction(5, 2), np.array([2.5]), [2.5], (2.5,)]
)
def test_a_number_of_any_library_is_read_as_one_point(returned: Any) -> None:
    assert read_points("train", returned) == [{"": 2.5}]


@pytest.mark.parametrize(
    "returned", [[1, 2.5], (1, 2.5), np.array([1, 2.5]), torch.tensor([1, 2.5]), pd.Series([1, 2.5])]
)
def test_a_returned_sequence_is_read_as_a_curve(returned: Any) -> None:
    assert read_points("train", returned) == [{"": 1.0}, {"": 2.5}]


def test_a_returned_dict_is_read_as_one_point() -> None:
    assert read_points("train", {"score": np.float64(2), "solved": True}) == [{"score": 2.0, "solved": 1.0}]


def test_a_list_of_dicts_is_read_as_a_curve_of_metrics() -> None:
    points = [{"score": 1.0, "loss": 3.0}, {"score": 2.0, "loss": 1.0}]
    assert read_points("train", points) == points


def test_a_dict_of_lists_is_read_as_a_curve_of_metrics() -> None:
    history = {"score": [1, 2], "loss": np.array([3.0, 1.0])}
    assert read_points("train", history) == [{"score": 1.0, "loss": 3.0}, {"score": 2.0, "loss": 1.0}]


def test_an_integer_too_large_for_a_float_is_infinite() -> None:
    assert read_points("train", 10**400) == [{"": float("inf")}]


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (None, "what train returned is None, not a number"),
        ("0.5", "what train returned is '0.5', not a number"),
        ({"score": None}, "'score' of what train returned is None, not a number"),
        ([1.0, "x"], "item 1 of what train returned is 'x', not a number"),
        ([[1.0]], "item 0 of what train returned is list, not a number"),
        (object(), "what train returned is object, not a number"),
        ([], "train returned an empty list, so there is no outcome"),
        ({}, "what train returned is an empty dict, so there is no outcome"),
        ([{"a": 1}, {"b": 1}], "the items that train returned have different names; give each the same"),
        (
            {"score": [1, 2], "loss": [1]},
            "what train returned has lists of different lengths, or lists and numbers; make them lists of one length",
        ),
        (
            {"score": 1, "curve": [1]},
            "what train returned has lists of different lengths, or lists and numbers; make them lists of one length",
        ),
        ((value for value in [1]), "train returned a generator; return the outcome, a number"),
    ],
)
def test_unsupported_return_values_are_refused_in_one_line(returned: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        read_points("train", returned)
