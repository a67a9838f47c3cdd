"""Lookup of a reward function by its mode: an entry of workers/rewards, or a user's own.

Every error is a ValueError of one line that names the mode, the fault and what would be right.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from types import ModuleType

import numpy as np

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import USER_FAULTS, UserCodeFailed
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.settings import RewardSettings
from workers.facts import Floats, StepFacts
from workers.user_rewards import user_code as _user_code
from workers.user_rewards.user_code import UserCode

RewardFunction = Callable[[StepFacts, RewardSettings], Floats]
Find = Callable[[str], RewardFunction]  # a mode's name -> its function
_PACKAGE = "workers.rewards"
_FORMS = "path/to/file.py:function or module:function"


def find_reward(mode: str) -> RewardFunction:
    """Return the function of `mode`, with results checked and made [E] float64; ValueError naming the mode.

    `mode` is a file of workers/rewards ("shaped"), "path/to/file.py:function" (relative to the working directory), or
    "module:function" (installed). A user's file is executed once per call of this function; it may import modules from
    its folder.
    """
    place, colon, attribute = mode.rpartition(":")
    if not colon:
        return _checked(_of_catalog(mode), mode)
    if not place or not attribute:
        raise ValueError(f"reward mode {mode!r}: expected {_FORMS}")
    return user_function(mode)[0]


def user_function(mode: str) -> tuple[RewardFunction, UserCode]:
    """Return a user's reward function and the code it was loaded from; executes the code once."""
    place, _, attribute = mode.rpartition(":")
    code = _user_code.load(f"reward mode {mode!r}", place)
    return _checked(_function(mode, code.module, attribute), mode), code


def as_planned(codes: Sequence[RewardCode], experiment_dir: Path) -> Find:
    """Return a `find_reward` that uses, for `codes`, their state at the time of planning.

    They are loaded from the copies in `experiment_dir`. ValueError also when a copy, or an installed module without
    one, has changed since planning.
    """
    known = {code.reference: code for code in codes}
    return lambda mode: _planned(known[mode], experiment_dir) if mode in known else find_reward(mode)


def _planned(code: RewardCode, experiment_dir: Path) -> RewardFunction:
    mode = code.reference
    module = _user_code.load_planned(f"reward mode {mode!r}", code, experiment_dir)
    return _checked(_function(mode, module, mode.rpartition(":")[2]), mode)


def _of_catalog(mode: str) -> RewardFunction:
    names = catalog.names(_PACKAGE)
    if mode in names:
        function: RewardFunction = catalog.entry(_PACKAGE, mode, "reward")
        return function
    close = get_close_matches(mode, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"no reward mode {mode!r}: {hint}it is one of {', '.join(names)}, or {_FORMS}")


def _function(mode: str, module: ModuleType, attribute: str) -> RewardFunction:
    function = getattr(module, attribute, None)
    if not callable(function):
        members = inspect.getmembers(module, inspect.isfunction)
        own = [name for name, member in members if member.__module__ == module.__name__ and not name.startswith("_")]
        raise ValueError(f"reward mode {mode!r}: no function {attribute!r} there; it has {', '.join(own) or 'none'}")
    try:
        inspect.signature(function).bind("facts", "settings")
    except (TypeError, ValueError):
        raise ValueError(f"reward mode {mode!r}: it must take (facts, settings)") from None
    typed: RewardFunction = function
    return typed


def _checked(function: RewardFunction, mode: str) -> RewardFunction:
    @wraps(function)
    def checked(facts: StepFacts, settings: RewardSettings) -> Floats:
        try:
            result = np.asarray(function(facts, settings))
        except USER_FAULTS as error:
            place = _user_code.line_of(error, function)
            raise UserCodeFailed(f"reward mode {mode!r} failed: {_user_code.one_line(error)}{place}") from error
        if result.shape != facts.op.shape or result.dtype.kind not in "fiub":
            found = f"shape {result.shape} {result.dtype}"
            raise UserCodeFailed(f"reward mode {mode!r} returned {found}, not {facts.op.shape} float64")
        return result.astype(np.float64, copy=False)

    return checked
