"""Controllers' observations: one table of features defines the width and every slice. Not normalised.

Order: base features, the slot block of every slot, then the telemetry block of every slot, in network order. Every
entry is bounded, |x| <= 2. An empty slot is all zeros; the row of a stopped environment is all zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32, Ints
from workers.kinds.growth.rules.lifecycle import COOLDOWN, Lifecycle
from workers.kinds.growth.rules.masks import seed_limit
from workers.kinds.growth.rules.seeds import DOWN, UP, SeedTable
from workers.kinds.growth.rules.tracker import HISTORY, Measurement, Signals
from workers.kinds.growth.vocabulary import SPEEDS, STYLES, TEMPOS, Stage

_STAGES = (  # PRUNED is never observed: it lasts from a decision to the end of its step
    Stage.GERMINATED,
    Stage.TRAINING,
    Stage.BLENDING,
    Stage.HOLDING,
    Stage.FOSSILIZED,
    Stage.EMBARGOED,
    Stage.RESETTING,
)
_LONGEST_RAMP = max(*TEMPOS, *SPEEDS)
_PLATEAU_CAP = 10
_LOSS_CAP = 20.0  # nats
_PARAMETERS_CAP = 1e8
# The smallest standard deviation by which a policy divides an entry. An entry that was constant and then moves by 1,
# such as the one-hot of a blueprint seen for the first time, just reaches 10, at which the policy clips.
STD_FLOOR = 0.1


@dataclass(frozen=True)
class _Seen:
    """Inputs of the features."""

    table: SeedTable
    present: Bools  # [E, S]
    signals: Signals
    contribution: Floats  # [E, S] measured this epoch, NaN where not
    step: int
    steps: int
    seed_limit: int


@dataclass(frozen=True)
class Feature:
    """One feature. `values` gives [E] or [E, width] for the base, [E, S] or [E, S, width] per slot.

    The entry is x / scale. With `log_up_to` it is log1p(x clipped to [0, log_up_to]) / scale. With `bounded` it is
    tanh(x / scale), which is nearly linear below the scale. NaN (unknown) becomes 0.
    """

    name: str
    values: Callable[[_Seen], NDArray[np.generic] | float]
    width: int = 1
    scale: float = 1.0
    log_up_to: float | None = None
    bounded: bool = False


def _loss(name: str, width: int = 1) -> Feature:
    """Return a feature of a loss signal, in nats; about 0.4 at ln 10."""
    return Feature(name, attrgetter(f"signals.{name}"), width, math.log1p(_LOSS_CAP), log_up_to=_LOSS_CAP)


def _percent(name: str, width: int = 1) -> Feature:
    """Return a feature of an accuracy signal."""
    return Feature(name, attrgetter(f"signals.{name}"), width, 100.0)


def _points(name: str, scale: float, values: Callable[[_Seen], Floats]) -> Feature:
    """Return a feature of a difference in points."""
    return Feature(name, values, 1, scale, bounded=True)


def _parameters(name: str, values: Callable[[_Seen], Ints]) -> Feature:
    """Return a feature of a parameter count; 1 at a million."""
    return Feature(name, values, 1, math.log1p(1e6), log_up_to=_PARAMETERS_CAP)


def _one_hot(name: str, choices: Sequence[int]) -> Feature:
    """Return a one-hot feature of a table entry, [E, S] -> [E, S, choice]; all zeros for any other value."""
    values = attrgetter(f"table.{name}")
    if len(choices) == 1:  # [E, S], like a feature of one number
        return Feature(name, lambda view: np.asarray(values(view) == choices[0]))
    numbers = np.array(choices)
    return Feature(name, lambda view: np.asarray(values(view)[:, :, None] == numbers), len(choices))


BASE: tuple[Feature, ...] = (
    Feature("progress", lambda view: view.step / view.steps),
    _loss("train_loss"),
    _loss("val_loss"),
    _points("loss_delta", 0.5, attrgetter("signals.loss_delta")),
    _percent("train_acc"),
    _percent("val_acc"),
    _points("acc_delta", 10.0, attrgetter("signals.acc_delta")),
    Feature("plateau", lambda view: np.minimum(view.signals.plateau_epochs, _PLATEAU_CAP), scale=_PLATEAU_CAP),
    _percent("best_val_acc"),
    _loss("best_val_loss"),
    _loss("loss_history", HISTORY),
    _percent("acc_history", HISTORY),
    Feature("stabilized", attrgetter("signals.stabilized")),
    _parameters("params_added", lambda view: view.table.params.sum(axis=1)),
    Feature("seed_utilisation", lambda view: view.present.sum(axis=1) / view.seed_limit),
)


def _slot_features(n_blueprints: int) -> tuple[Feature, ...]:
    """Return the slot block: identity, stage and ramp of the seed."""
    return (
        Feature("present", attrgetter("present")),
        _one_hot("stage", _STAGES),
        Feature("alpha", attrgetter("table.alpha")),
        Feature("alpha_target", attrgetter("table.alpha_target")),
        Feature("ramp_up", lambda view: view.table.alpha_mode == UP),
        Feature("ramp_down", lambda view: view.table.alpha_mode == DOWN),
        Feature("ramp_left", lambda view: view.table.steps_total - view.table.steps_done, scale=_LONGEST_RAMP),
        Feature("blending_out", attrgetter("table.frozen")),
        Feature("tempo", attrgetter("table.tempo"), scale=max(TEMPOS)),
        Feature("germination_target", attrgetter("table.germination_target")),
        Feature("measured", lambda view: ~np.isnan(view.table.contribution)),
        _points("contribution", 20.0, attrgetter("table.contribution")),
        _points("velocity", 10.0, attrgetter("table.velocity")),
        _points("interaction", 20.0, attrgetter("table.interaction_sum")),
        Feature("cooldown_left", attrgetter("table.cooldown_left"), scale=COOLDOWN),
        _one_hot("style", range(len(STYLES))),
        _one_hot("blueprint", range(n_blueprints)),
    )


def _gain(view: _Seen, accuracy: Floats) -> Floats:
    """Return the gain [E, S] of validation accuracy since a moment in the seed's life; 0 in slots without a seed."""
    return np.where(view.present, view.signals.val_acc[:, None] - accuracy, 0.0)


TELEMETRY: tuple[Feature, ...] = (
    Feature("age", lambda view: view.table.age / view.steps),
    Feature("epochs_in_stage", lambda view: view.table.epochs_in_stage / view.steps),
    _points("gain_in_stage", 20.0, lambda view: _gain(view, view.table.acc_at_stage_start)),
    _points("gain_in_life", 20.0, lambda view: _gain(view, view.table.acc_at_germination)),
    Feature("fresh", lambda view: ~np.isnan(view.contribution)),
    _parameters("params", attrgetter("table.params")),
)


@dataclass(frozen=True)
class _Table:
    """Features for a number of slots and blueprints, and the transformation of each column."""

    slots: tuple[Feature, ...]  # the slot block of one slot
    slots_at: int  # column at which the slot blocks begin
    telemetry_at: int
    scale: Floats  # [width]
    log: Ints  # indices of log1p columns
    log_up_to: Floats  # their caps
    bounded: Ints  # indices of tanh columns


@lru_cache(maxsize=8)
def _table(n_slots: int, n_blueprints: int) -> _Table:
    slots = _slot_features(n_blueprints)
    columns = list[Feature]()
    for feature in (*BASE, *slots * n_slots, *TELEMETRY * n_slots):
        columns += [feature] * feature.width
    caps = [feature.log_up_to for feature in columns]
    return _Table(
        slots=slots,
        slots_at=_width(BASE),
        telemetry_at=_width(BASE) + n_slots * _width(slots),
        scale=np.array([feature.scale for feature in columns], dtype=np.float64),
        log=np.array([i for i, cap in enumerate(caps) if cap is not None]),
        log_up_to=np.array([cap for cap in caps if cap is not None]),
        bounded=np.array([i for i, feature in enumerate(columns) if feature.bounded]),
    )


def _width(features: tuple[Feature, ...]) -> int:
    return sum(feature.width for feature in features)


def observation_width(n_slots: int, n_blueprints: int) -> int:
    """Return the width for `n_slots` slots and `n_blueprints` blueprints: base + S * (slot + telemetry)."""
    return len(_table(n_slots, n_blueprints).scale)


def _write(block: Floats, features: tuple[Feature, ...], view: _Seen) -> None:
    """Write the values of `features` into `block` [..., their total width]."""
    start = 0
    for feature in features:
        if feature.width == 1:
            block[..., start] = feature.values(view)
        else:
            block[..., start : start + feature.width] = feature.values(view)
        start += feature.width


def observe(lifecycle: Lifecycle, signals: Signals, measurement: Measurement, step: int) -> Floats32:
    """Return the observations before decision `step` (1-based), [E, width]; `measurement` must already be recorded.

    Values of all features are collected first and transformed together, because numpy's cost is per call.
    """
    n_envs, n_slots = lifecycle.table.stage.shape
    view = _Seen(
        table=lifecycle.table,
        present=lifecycle.table.present,
        signals=signals,
        contribution=measurement.contribution,
        step=step,
        steps=lifecycle.rules.steps,
        seed_limit=seed_limit(lifecycle.rules, n_slots),
    )
    table = _table(n_slots, len(lifecycle.blueprints))
    x = np.empty((n_envs, len(table.scale)))
    _write(x[:, : table.slots_at], BASE, view)
    _write(x[:, table.slots_at : table.telemetry_at].reshape(n_envs, n_slots, -1), table.slots, view)
    _write(x[:, table.telemetry_at :].reshape(n_envs, n_slots, -1), TELEMETRY, view)
    x[np.isnan(x)] = 0.0
    clipped_values = np.minimum(np.maximum(x[:, table.log], 0.0), table.log_up_to)
    x[:, table.log] = np.log1p(clipped_values)
    x /= table.scale
    x[:, table.bounded] = np.tanh(x[:, table.bounded])
    x[~lifecycle.alive] = 0.0
    return x.astype(np.float32)
