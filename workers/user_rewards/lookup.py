"""Lookup of a reward function by its mode: an entry of workers/rewards, or a user's own.

Every error is a ValueError of one line that names the mode, the fault and what would be right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path

from esper_ab.contracts import catalog
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.settings import RewardSettings
from workers.facts import Floats, StepFacts
from workers.user_rewards import user_code as _user_code
from workers.user_rewards.user_code import UserCode

RewardFunction = Callable[[StepFacts, RewardSettings], Floats]
Find = Callable[[str], RewardFunction]  # a mode's name -> its function
_PACKAGE = "workers.rewards"
_FORMS = "path/to/file.py:function or module:function"
_CALL = "(facts, settings)"


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
    what = f"reward mode {mode!r}"
    code = _user_code.load(what, place)
    return _checked(_user_code.function_of(what, code.module, attribute, _CALL), mode), code


def as_planned(codes: Sequence[RewardCode], experiment_dir: Path) -> Find:
    """Return a `find_reward` that uses, for `codes`, their state at the time of planning.

    They are loaded from the copies in `experiment_dir`. ValueError also when a copy, or an installed module without
    one, has changed since planning.
    """
    known = {code.reference: code for code in codes}
    return lambda mode: _planned(known[mode], experiment_dir) if mode in known else find_reward(mode)


def _planned(code: RewardCode, experiment_dir: Path) -> RewardFunction:
    mode, what = code.reference, f"reward mode {code.reference!r}"
    module = _user_code.load_planned(what, code, experiment_dir)
    return _checked(_user_code.function_of(what, module, mode.rpartition(":")[2], _CALL), mode)


def _of_catalog(mode: str) -> RewardFunction:
    names = catalog.names(_PACKAGE)
    if mode in names:
        function: RewardFunction = catalog.entry(_PACKAGE, mode, "reward")
        return function
    close = get_close_matches(mode, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"no reward mode {mode!r}: {hint}it is one of {', '.join(names)}, or {_FORMS}")


def _checked(function: RewardFunction, mode: str) -> RewardFunction:
    @wraps(function)
    def checked(facts: StepFacts, settings: RewardSettings) -> Floats:
        return _user_code.numbers(f"reward mode {mode!r}", function, (facts, settings), facts.op.shape)

    return checked
