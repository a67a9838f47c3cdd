"""Finds a mode's reward function, in workers/kinds/growth/rewards or in the user's code, and rehearses it.

Every error is a one-line ValueError that names the mode, the fault and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any

import numpy as np

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import RewardSettings
from workers.arrays import all_false, flaw, int_zeros
from workers.kinds.growth.catalogues import REWARDS
from workers.kinds.growth.facts import Floats, SeedFacts, StepFacts
from workers.kinds.growth.vocabulary import Op, Stage
from workers.user_code.loading import Load, as_it_is, function_at, numbers

RewardFunction = Callable[[StepFacts, RewardSettings], Floats]
_FORMS = "path/to/file.py:function or module:function"
_CALL = "(facts, settings)"


def find_reward(mode: str, load: Load = as_it_is) -> RewardFunction:
    """Return the reward function of `mode`; the function checks its results and returns [E] float64.

    `mode` is a file of the folder `rewards` ("shaped"), "path/to/file.py:function" (relative to the working directory),
    or "module:function" (installed). A user's file is loaded once per call of this function and may import modules
    from its own folder. Raises ValueError, with a message that names the mode, if there is no such function.
    """
    if ":" in mode:
        function = function_at(f"reward mode {mode!r}", mode, load, _CALL)[1]
    else:
        function = _load_from_catalogue(mode)

    @wraps(function)
    def checked_reward(facts: StepFacts, settings: RewardSettings) -> Floats:
        return numbers(f"reward mode {mode!r}", function, (facts, settings), facts.op.shape)

    return checked_reward


def _load_from_catalogue(mode: str) -> RewardFunction:
    names = catalog.names(REWARDS)
    if mode in names:
        function: RewardFunction = catalog.entry(REWARDS, mode, "reward")
        return function
    close = get_close_matches(mode, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"no reward mode {mode!r}: {hint}choose from {', '.join(names)}, or {_FORMS}")


_ENVS = 3
_STEPS = 25


def rehearse(function: RewardFunction, mode: str, n_slots: int) -> bool:
    """Return whether `function` gives equal results for equal facts.

    Raises a one-line ValueError if the function fails, or returns anything but one number per environment.
    """
    is_repeated = True
    for step in (1, 12):
        values = function(_facts(step, n_slots), RewardSettings(mode=mode))
        repeated_values = function(_facts(step, n_slots), RewardSettings(mode=mode))
        is_repeated = is_repeated and np.array_equal(values, repeated_values)
        if flaw_words := flaw(values):
            hint = ""
            if step == 1 and np.isnan(values).any():
                hint = "; facts that are not yet measured are NaN (at step 1: acc_delta and loss_delta)"
            raise ValueError(f"reward mode {mode!r} {flaw_words} at step {step}: {values.tolist()}{hint}")
    return is_repeated


def _facts(step: int, n_slots: int) -> StepFacts:
    """Return facts of environments that wait, germinate and prune; from step 2 on the first slot has a seed."""
    grown_mask = all_false((_ENVS, n_slots))
    grown_mask[:, 0] = step > 1

    def of_seeds(value: float) -> Any:
        return np.where(grown_mask, value, 0)

    seeds = SeedFacts(
        present=grown_mask,
        stage=of_seeds(Stage.BLENDING),
        previous_stage=of_seeds(Stage.TRAINING),
        epochs_in_stage=of_seeds(2),
        age=of_seeds(6),
        contribution=np.where(grown_mask, 1.5, np.nan),
        total_improvement=of_seeds(2.0),
        interaction_sum=of_seeds(0.5),
        acc_at_germination=np.where(grown_mask, 40.0, np.nan),
        potential_before=of_seeds(3.5),
    )
    if step > 1:
        op = np.array([Op.WAIT, Op.GERMINATE, Op.PRUNE], dtype=np.int64)
        acc_delta = np.array([0.0, 1.0, -2.0])
        loss_delta = np.array([0.0, 0.1, -0.1])
    else:
        op = int_zeros(_ENVS)
        acc_delta = np.full(_ENVS, np.nan)
        loss_delta = np.full(_ENVS, np.nan)
    size = np.full(_ENVS, 1000, dtype=np.int64)
    added_params = of_seeds(200).sum(axis=1)
    return StepFacts(
        op=op,
        slot=np.where(op == Op.WAIT, -1, 0),
        seeds=seeds,
        step=step,
        steps=_STEPS,
        val_acc=np.array([40.0, 45.0, 50.0]),
        best_val_acc=np.array([40.0, 46.0, 52.0]),
        acc_delta=acc_delta,
        val_loss=np.array([1.5, 1.4, 1.3]),
        loss_delta=loss_delta,
        host_params=size,
        total_params=size + added_params,
        effective_seed_params=added_params.astype(np.float64),
        alpha_delta_sq_sum=added_params * 0.001,
        fossilized=int_zeros(_ENVS),
        contributing=int_zeros(_ENVS),
    )
