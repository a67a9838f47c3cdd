"""The observation: a layout from one table, bounded values, and a slice per slot."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.growth_world import BLUEPRINTS, SLOTS, Episode, decision, make_lifecycle, measure, random_decisions

from workers.kinds.growth.rules.lifecycle import Lifecycle
from workers.kinds.growth.rules.masks import Rules
from workers.kinds.growth.rules.observe import BASE, TELEMETRY, _slot_features, observation_width
from workers.kinds.growth.vocabulary import Op


@dataclass(frozen=True)
class Layout:
    """Slices of all features in an observation: of all slots together, and of each slot, whose entries are `mine`."""

    width: int
    base: dict[str, slice]
    slots: list[dict[str, slice]]
    mine: np.ndarray  # [slot, entry]


def layout(n_slots: int, n_blueprints: int) -> Layout:
    """Return the layout for `n_blueprints` enabled ones: width base + S * (slot + telemetry)."""
    blocks = [
        (BASE, -1),
        *((features, slot) for features in (_slot_features(n_blueprints), TELEMETRY) for slot in range(n_slots)),
    ]
    ends = np.cumsum([feature.width for features, _ in blocks for feature in features])
    base = {}
    slots = [{} for _ in range(n_slots)]
    end = iter(ends.tolist())
    feature_mask = np.zeros((n_slots, ends[-1]), dtype=bool)
    for features, slot in blocks:
        for feature in features:
            stop = next(end)
            (base if slot < 0 else slots[slot])[feature.name] = columns = slice(stop - feature.width, stop)
            if slot >= 0:
                feature_mask[slot, columns] = True
    return Layout(int(ends[-1]), base, slots, feature_mask)


WHERE = layout(len(SLOTS), len(BLUEPRINTS))


@pytest.mark.parametrize(("n_slots", "n_blueprints"), [(1, 1), (3, 7), (5, 2)])
def test_the_observation_width_is_the_sum_of_all_features(n_slots: int, n_blueprints: int) -> None:
    assert observation_width(n_slots, n_blueprints) == layout(n_slots, n_blueprints).width


def test_empty_slots_are_zeros_in_the_first_observation() -> None:
    game = Episode(make_lifecycle(1, steps=25), np.random.default_rng(0))
    measurement = measure(game.lifecycle, game.rng)
    view = game.view(1, dataclasses.replace(measurement, val_acc=np.array([30.0]), val_loss=np.array([2.0])))
    observation = view.observation[0]
    assert (observation.dtype, observation.shape) == (np.float32, (WHERE.width,))
    assert not observation[WHERE.mine.any(axis=0)].any()
    expected = {
        "progress": [1 / 25],
        "val_acc": [0.3],
        "acc_history": [0, 0, 0, 0, 0.3],
        "loss_delta": [0],
        "val_loss": [np.log(3.0) / np.log(21.0)],
    }
    assert {name: observation[WHERE.base[name]].tolist() for name in expected} == {
        name: pytest.approx(values) for name, values in expected.items()
    }


@pytest.mark.parametrize("slot", range(len(SLOTS)))
def test_features_of_a_slot_depend_only_on_the_slot(slot: int) -> None:
    """Two environments measure the same; only one germinates. They differ in that slot's blocks and nowhere else."""
    game = Episode(make_lifecycle(2), np.random.default_rng(1))
    germination = decision(op=Op.GERMINATE, slot=slot, blueprint=2, alpha_target=2)
    advance = decision(op=Op.ADVANCE, slot=slot)
    script = [germination, advance, advance, decision(), decision()]
    expected = WHERE.mine[slot].copy()
    for name in ("params_added", "seed_utilisation"):  # totals over slots
        expected[WHERE.base[name]] = True
    for step, wish in enumerate(script, start=1):
        measurement = measure(game.lifecycle, game.rng)
        equal_readings = {
            name: np.repeat(array[:1], 2, axis=0) for name, array in vars(measurement).items() if array.ndim == 1
        }
        observations = game.view(step, dataclasses.replace(measurement, **equal_readings)).observation
        differs = observations[0] != observations[1]
        assert not (differs & ~expected).any()
        if step > 1:
            assert differs[WHERE.slots[slot]["present"]].any()
            assert differs[WHERE.slots[slot]["params"]].any()  # of the block of telemetry
        game.act(np.concatenate([wish, decision()]), step)


def test_slot_features_have_their_expected_values() -> None:
    game = Episode(make_lifecycle(1, steps=20), np.random.default_rng(2))
    germination = decision(op=Op.GERMINATE, slot=1, blueprint=1, style=3, tempo=1, alpha_target=1)
    game.follow([germination, *[decision(op=Op.ADVANCE, slot=1)] * 2])
    observation = game.view(4).observation[0]
    expected = {
        "present": [1],
        "stage": [0, 0, 1, 0, 0, 0, 0],
        "alpha_target": [0.7],
        "germination_target": [0.7],
        "alpha": [0.14],  # one of five linear ticks
        "ramp_up": [1],
        "ramp_down": [0],
        "blending_out": [0],
        "ramp_left": [0.5],
        "measured": [1],
        "fresh": [1],
        "style": [0, 0, 0, 1, 0],
        "blueprint": [0, 1, 0],
        "age": [0.15],
        "epochs_in_stage": [0.05],
    }
    values_by_name = {name: observation[WHERE.slots[1][name]].tolist() for name in expected}
    assert values_by_name == {name: pytest.approx(values, abs=1e-4) for name, values in expected.items()}


def test_observed_totals_are_sums_over_all_slots() -> None:
    game = Episode(make_lifecycle(1, max_seeds=2), np.random.default_rng(2))
    game.follow(decision(op=Op.GERMINATE, slot=slot, blueprint=slot) for slot in (0, 2))
    observation = game.view(3).observation[0]
    assert observation[WHERE.base["params_added"]] == pytest.approx(np.log1p(100 + 300) / np.log1p(1e6))
    assert observation[WHERE.base["seed_utilisation"]] == 1.0


def test_observations_distinguish_an_unmeasured_contribution_from_zero() -> None:
    """Before the first measurement and with a contribution of exactly 0: told apart by the flag."""
    game = Episode(make_lifecycle(1), np.random.default_rng(3))
    game.follow([decision(op=Op.GERMINATE, tempo=0, alpha_target=2)])
    unmeasured_row = game.view(2).observation[0]
    zero = dataclasses.replace(measure(game.lifecycle, game.rng), contribution=np.array([[0.0, np.nan, np.nan]]))
    measured_row = game.view(3, zero).observation[0]
    assert (unmeasured_row[WHERE.slots[0]["measured"]], measured_row[WHERE.slots[0]["measured"]]) == (0.0, 1.0)
    assert unmeasured_row[WHERE.slots[0]["contribution"]] == measured_row[WHERE.slots[0]["contribution"]] == 0.0


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1e30))
@settings(max_examples=20)
def test_observations_are_bounded(rng_seed: int, loss: float) -> None:
    rng = np.random.default_rng(rng_seed)
    game = Episode(make_lifecycle(3, 15), rng)
    for step in range(1, 16):
        measurement = measure(game.lifecycle, rng)
        wild_measurement = dataclasses.replace(
            measurement, val_loss=np.full(3, loss), contribution=measurement.contribution * 1e3
        )
        view = game.view(step, wild_measurement)
        assert np.isfinite(view.observation).all()
        assert np.abs(view.observation).max() <= 2.0
        game.act(random_decisions(view.masks, rng), step)


def test_the_observation_of_a_stopped_environment_is_zero() -> None:
    game = Episode(make_lifecycle(2), np.random.default_rng(4))
    game.lifecycle.stop(np.array([True, False]))
    observations = game.view(1).observation
    assert not observations[0].any()
    assert observations[1].any()


@pytest.mark.parametrize("blueprints", [BLUEPRINTS[:1], BLUEPRINTS[:2]])
def test_the_observation_contains_the_blueprint_of_a_seed_module(blueprints: tuple[str, ...]) -> None:
    rules = Rules(steps=5, gates="permissive", max_seeds=0)
    game = Episode(Lifecycle(1, SLOTS, blueprints, rules), np.random.default_rng(2))
    last_blueprint = len(blueprints) - 1
    game.follow([decision(op=Op.GERMINATE, slot=1, blueprint=last_blueprint)])
    observation = game.view(2).observation[0]
    slots = layout(len(SLOTS), len(blueprints)).slots
    blueprints_by_slot = [observation[columns["blueprint"]].tolist() for columns in slots]
    assert blueprints_by_slot == [
        [0.0] * (last_blueprint + 1),
        [0.0] * last_blueprint + [1.0],
        [0.0] * (last_blueprint + 1),
    ]
