import re
from typing import Any

import pytest

from workers.kinds.trainer.function_settings import read_settings


def train(seed, lr: float, steps=100, name="a", *, fast=False, rate=None, out="", device="cpu"): ...


def annotated_in_text(seed: "int", lr: "float", steps: "int" = 3): ...


def takes_any(**settings): ...


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lr": 0.1}, {"lr": 0.1, "steps": 100, "name": "a", "fast": False}),
        ({"lr": "1e-3", "steps": "7", "fast": "true"}, {"lr": 1e-3, "steps": 7, "name": "a", "fast": True}),
        ({"lr": "1", "steps": "7.5", "name": "12"}, {"lr": 1.0, "steps": 7.5, "name": "12", "fast": False}),
        ({"lr": 1, "rate": "0.5"}, {"lr": 1, "steps": 100, "name": "a", "fast": False, "rate": 0.5}),
        ({"lr": 1, "rate": "1_0"}, {"lr": 1, "steps": 100, "name": "a", "fast": False, "rate": "1_0"}),
        ({"lr": 1, "rate": "false"}, {"lr": 1, "steps": 100, "name": "a", "fast": False, "rate": False}),
    ],
)
def test_text_settings_get_the_type_of_the_parameter(given: Any, expected: Any) -> None:
    settings = read_settings(train, given)
    assert settings == expected
    assert {key: type(value) for key, value in settings.items()} == {
        key: type(value) for key, value in expected.items()
    }


def test_annotations_of_parameters_may_be_strings() -> None:
    assert read_settings(annotated_in_text, {"lr": "1"}) == {"lr": 1.0, "steps": 3}
    with pytest.raises(ValueError, match=r"^steps: expected int, not '2\.5'$"):
        read_settings(annotated_in_text, {"lr": "1", "steps": "2.5"})


def test_a_function_with_keyword_arguments_accepts_any_settings() -> None:
    assert read_settings(takes_any, {"lr": "3e-4", "kind": "adam"}) == {"lr": 3e-4, "kind": "adam"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "train needs a value for its parameter 'lr'; give every group one, or a default"),
        ({"lr": 1, "step": 2}, "train has no parameter 'step'; did you mean steps?"),
        ({"lr": 1, "momentum": 2}, "train has no parameter 'momentum'; known: lr, steps, name, fast, rate"),
        ({"lr": "fast"}, "lr: expected float, not 'fast'"),
        ({"lr": 1, "fast": "1"}, "fast: expected bool, not '1'"),
        ({"lr": 1, "seed": 1}, "train: seed cannot be a setting, because esper_ab fills it in for every run"),
        ({"lr": 1, "device": "cuda"}, "train: device cannot be a setting, because esper_ab fills it in for every run"),
    ],
)
def test_settings_without_a_matching_parameter_are_refused(given: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        read_settings(train, given)


def test_a_function_without_a_seed_is_refused() -> None:
    def unseeded(lr): ...

    with pytest.raises(
        ValueError, match=r"^unseeded has no parameter `seed`, so all runs of a group would be the same"
    ):
        read_settings(unseeded, {"lr": 1})


def test_generators_and_coroutines_are_refused_as_functions() -> None:
    def points(seed):
        yield 1.0

    async def later(seed): ...

    for function in (points, later):
        with pytest.raises(ValueError, match="does not return its outcome when it is called"):
            read_settings(function, {})
