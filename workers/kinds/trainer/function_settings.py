"""The settings of a call of a user's function, as its parameters take them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from esper_ab.contracts.trainer import TrainerValue
from esper_ab.contracts.wording import did_you_mean

FILLED = ("seed", "out", "device")  # parameters that every run fills in
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_TYPES = (bool, int, float, str)
_KINDS: dict[Any, Any] = {**{kind: kind for kind in _TYPES}, **{kind.__name__: kind for kind in _TYPES}}
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")


def read_settings(function: Callable[..., Any], given_settings: Mapping[str, TrainerValue]) -> dict[str, TrainerValue]:
    """Return the settings of a call with the types of the parameters, and defaults that settings may have.

    Raises ValueError unless `function` can be called with them and a seed.
    """
    name = function.__name__
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(inspect.unwrap(function)):
        raise ValueError(
            f"{name} does not return its outcome when it is called; define it with def, return and no yield"
        )
    parameters = inspect.signature(function).parameters
    named_parameters = {key: parameter for key, parameter in parameters.items() if parameter.kind in _BY_NAME}
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if "seed" not in named_parameters and not takes_any:
        raise ValueError(
            f"{name} has no parameter `seed`, so all runs of a group would be the same; add one, and draw from it all "
            "that is random"
        )
    setting_names = [key for key in named_parameters if key not in FILLED]
    settings: dict[str, TrainerValue] = {}
    for key, value in given_settings.items():
        if key in FILLED:
            raise ValueError(f"{name}: {key} cannot be a setting, because esper_ab fills it in for every run")
        if key not in named_parameters and not takes_any:
            raise ValueError(f"{name} has no parameter {key!r}; {did_you_mean(key, setting_names)}")
        settings[key] = _typed(key, value, named_parameters.get(key))
    for key in setting_names:
        if key in settings:
            continue
        parameter = named_parameters[key]
        if parameter.default is parameter.empty:
            raise ValueError(f"{name} needs a value for its parameter {key!r}; give every group one, or a default")
        if isinstance(parameter.default, bool | int | float | str):
            settings[key] = parameter.default
    return settings


def _typed(name: str, value: Any, parameter: inspect.Parameter | None) -> Any:
    """Return a setting; text, as from a command line, becomes what the parameter's annotation or default is."""
    if not isinstance(value, str):
        return value
    kind = None if parameter is None else _kind_of(parameter)
    if kind is str:
        return value
    if kind in (None, bool) and value in ("true", "false"):
        return value == "true"
    if kind is not bool and _NUMBER.fullmatch(value):
        return _number(name, value, kind)
    if kind is None:
        return value
    raise ValueError(f"{name}: expected {kind.__name__}, not {value!r}")


def _kind_of(parameter: inspect.Parameter) -> Any:
    """Return bool, int, float or str, if a parameter is annotated as such or has such a default; else None.

    A default may be a whole number where others need not be.
    """
    annotation = parameter.annotation
    if isinstance(annotation, type | str) and annotation in _KINDS:
        return _KINDS[annotation]
    default = type(parameter.default)
    return default if default in (bool, float, str) else None


def _number(name: str, text: str, kind: Any) -> int | float:
    if kind is float:
        return float(text)
    try:
        return int(text)
    except ValueError:
        if kind is int:
            raise ValueError(f"{name}: expected int, not {text!r}") from None
        return float(text)
