"""What a controller sees: one table of features, from which the width and every slice follow. Knows no normaliser.

Order: the base features, then the slot block of every slot, then the telemetry block of every slot, in network order.
Every entry is bounded, |x| <= 2; an empty slot is all zeros; a stopped environment's row is all zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.growth.alpha import AlphaMode
from workers.growth.lifecycle import COOLDOWN, Lifecycle
from workers.growth.measurement import Measurement
from workers.growth.predicates import seed_limit
from workers.growth.seeds import SeedTable
from workers.growth.tracker import HISTORY, Signals, SignalTracker
from workers.rewards._facts import Bools, Floats, Ints
from workers.vocabulary import SPEEDS, STYLES, TEMPOS, Stage

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


@dataclass(frozen=True)
class _Seen:
    """What features are functions of."""

    table: SeedTable
    signals: Signals
    contribution: Floats  # [E, S] measured this epoch, NaN where not
    step: int
    steps: int
    seed_limit: int


@dataclass(frozen=True)
class Feature:
    """One row of the table: `values` gives [E] or [E, width] for the base, [E, S] or [E, S, width] per slot."""

    name: str
    width: int
    values: Callable[[_Seen], NDArray[np.generic]]


def _loss(nats: Floats) -> Floats:
    """0 for nothing known; about 0.4 at ln 10."""
    return np.asarray(np.log1p(np.clip(np.nan_to_num(nats), 0.0, _LOSS_CAP)) / np.log1p(_LOSS_CAP))


def _percent(accuracy: Floats) -> Floats:
    return np.nan_to_num(accuracy) / 100.0


def _points(difference: Floats, scale: float) -> Floats:
    """Bounded by 1, nearly linear below `scale`; an unknown difference is 0."""
    return np.tanh(np.nan_to_num(difference) / scale)


def _parameters(count: Ints) -> Floats:
    """1 at a million."""
    return np.asarray(np.log1p(np.minimum(count, 10**8)) / np.log1p(1e6))


def _one_hot(values: Ints, choices: tuple[int, ...]) -> Bools:
    """[E, S] -> [E, S, choice]; all False for a value that is no choice."""
    return np.asarray(values[:, :, None] == np.array(choices))


BASE: tuple[Feature, ...] = (
    Feature("progress", 1, lambda seen: np.full(len(seen.signals.val_acc), seen.step / seen.steps)),
    Feature("train_loss", 1, lambda seen: _loss(seen.signals.train_loss)),
    Feature("val_loss", 1, lambda seen: _loss(seen.signals.val_loss)),
    Feature("loss_delta", 1, lambda seen: _points(seen.signals.loss_delta, 0.5)),
    Feature("train_acc", 1, lambda seen: _percent(seen.signals.train_acc)),
    Feature("val_acc", 1, lambda seen: _percent(seen.signals.val_acc)),
    Feature("acc_delta", 1, lambda seen: _points(seen.signals.acc_delta, 10.0)),
    Feature("plateau", 1, lambda seen: np.minimum(seen.signals.plateau_epochs, _PLATEAU_CAP) / _PLATEAU_CAP),
    Feature("best_val_acc", 1, lambda seen: _percent(seen.signals.best_val_acc)),
    Feature("best_val_loss", 1, lambda seen: _loss(seen.signals.best_val_loss)),
    Feature("loss_history", HISTORY, lambda seen: _loss(seen.signals.loss_history)),
    Feature("acc_history", HISTORY, lambda seen: _percent(seen.signals.acc_history)),
    Feature("stabilized", 1, lambda seen: seen.signals.stabilized),
    Feature("params_added", 1, lambda seen: _parameters(seen.table.params.sum(axis=1))),
    Feature("seed_utilisation", 1, lambda seen: seen.table.present.sum(axis=1) / seen.seed_limit),
)


def _slot_features(n_blueprints: int) -> tuple[Feature, ...]:
    """The slot block: what the seed is, and where it stands."""
    return (
        Feature("present", 1, lambda seen: seen.table.present),
        Feature("stage", len(_STAGES), lambda seen: _one_hot(seen.table.stage, _STAGES)),
        Feature("alpha", 1, lambda seen: seen.table.alpha),
        Feature("alpha_target", 1, lambda seen: seen.table.alpha_target),
        Feature("ramp_up", 1, lambda seen: seen.table.alpha_mode == AlphaMode.UP),
        Feature("ramp_down", 1, lambda seen: seen.table.alpha_mode == AlphaMode.DOWN),
        Feature("ramp_left", 1, lambda seen: (seen.table.steps_total - seen.table.steps_done) / _LONGEST_RAMP),
        Feature("blending_out", 1, lambda seen: seen.table.frozen),
        Feature("tempo", 1, lambda seen: seen.table.tempo / max(TEMPOS)),
        Feature("germination_target", 1, lambda seen: seen.table.germination_target),
        Feature("measured", 1, lambda seen: ~np.isnan(seen.table.contribution)),
        Feature("contribution", 1, lambda seen: _points(seen.table.contribution, 20.0)),
        Feature("velocity", 1, lambda seen: _points(seen.table.velocity, 10.0)),
        Feature("interaction", 1, lambda seen: _points(seen.table.interaction_sum, 20.0)),
        Feature("cooldown_left", 1, lambda seen: seen.table.cooldown_left / COOLDOWN),
        Feature("style", len(STYLES), lambda seen: _one_hot(seen.table.style, tuple(range(len(STYLES))))),
        Feature("blueprint", n_blueprints, lambda seen: _one_hot(seen.table.blueprint, tuple(range(n_blueprints)))),
    )


def _since(seen: _Seen, accuracy: Floats) -> Floats:
    """[E, S] gain of validation accuracy since a moment in the seed's life; 0 for slots without a seed."""
    return np.where(seen.table.present, _points(seen.signals.val_acc[:, None] - accuracy, 20.0), 0.0)


TELEMETRY: tuple[Feature, ...] = (
    Feature("age", 1, lambda seen: seen.table.age / seen.steps),
    Feature("epochs_in_stage", 1, lambda seen: seen.table.epochs_in_stage / seen.steps),
    Feature("gain_in_stage", 1, lambda seen: _since(seen, seen.table.acc_at_stage_start)),
    Feature("gain_in_life", 1, lambda seen: _since(seen, seen.table.acc_at_germination)),
    Feature("fresh", 1, lambda seen: ~np.isnan(seen.contribution)),
    Feature("params", 1, lambda seen: _parameters(seen.table.params)),
)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where everything is in an observation."""

    width: int
    base: dict[str, slice]
    slots: tuple[dict[str, slice], ...]  # per slot: the features of its slot block and of its telemetry block
    slot_blocks: tuple[slice, ...]
    telemetry_blocks: tuple[slice, ...]


def _slices(features: tuple[Feature, ...], start: int) -> tuple[dict[str, slice], slice]:
    """Slice of every feature, and of the whole block, for a block that begins at `start`."""
    ends = start + np.cumsum([feature.width for feature in features])
    names = {f.name: slice(int(end) - f.width, int(end)) for f, end in zip(features, ends, strict=True)}
    return names, slice(start, int(ends[-1]))


def layout(n_slots: int, n_blueprints: int) -> Layout:
    """The layout for `n_slots` enabled slots and `n_blueprints` enabled blueprints: base + S * (slot + telemetry)."""
    base, end = _slices(BASE, 0)
    named: list[dict[str, slice]] = [{} for _ in range(n_slots)]
    blocks: list[slice] = []
    for features in (_slot_features(n_blueprints), TELEMETRY):
        for slot in range(n_slots):
            names, end = _slices(features, end.stop)
            named[slot] |= names
            blocks.append(end)
    return Layout(
        width=end.stop,
        base=base,
        slots=tuple(named),
        slot_blocks=tuple(blocks[:n_slots]),
        telemetry_blocks=tuple(blocks[n_slots:]),
    )


def observe(lifecycle: Lifecycle, tracker: SignalTracker, measurement: Measurement, step: int) -> NDArray[np.float32]:
    """Observations before decision `step` (1-based), [E, width]; `measurement` is recorded and tracked already."""
    n_envs, n_slots = lifecycle.table.stage.shape
    seen = _Seen(
        table=lifecycle.table,
        signals=tracker.signals,
        contribution=measurement.contribution,
        step=step,
        steps=lifecycle.rules.steps,
        seed_limit=seed_limit(lifecycle.rules, n_slots),
    )
    parts = [feature.values(seen).reshape(n_envs, feature.width) for feature in BASE]
    for features in (_slot_features(len(lifecycle.blueprints)), TELEMETRY):
        block = [feature.values(seen).reshape(n_envs, n_slots, feature.width) for feature in features]
        parts.append(np.concatenate(block, axis=2, dtype=np.float64).reshape(n_envs, -1))
    observation = np.concatenate(parts, axis=1, dtype=np.float64)
    return np.where(lifecycle.alive[:, None], observation, 0.0).astype(np.float32)
