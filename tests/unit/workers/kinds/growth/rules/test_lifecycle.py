"""The lifecycle of seed modules; masks and execution agree in every reachable state."""

import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.growth_world import Episode, decision, make_lifecycle, measure, random_decisions

from workers.kinds.growth.rules.lifecycle import InvalidDecision, Lifecycle
from workers.kinds.growth.rules.masks import DecisionMasks
from workers.kinds.growth.rules.seeds import AlphaMode, SeedTable
from workers.kinds.growth.vocabulary import HEADS, OP, SLOT, SPEEDS, STYLES, Op, Stage

FAST, FULL, HALF = 0, 2, 0  # tempo of 3 epochs, alpha targets 1.0 and 0.5
GATE_STYLE = next(i for i, (name, _, _) in enumerate(STYLES) if name == "linear_gate")
GERMINATE = decision(op=Op.GERMINATE, blueprint=1, tempo=FAST, alpha_target=FULL)
ADVANCE = decision(op=Op.ADVANCE)
WAIT = decision()
PRUNE = decision(op=Op.PRUNE)
PRUNE_SLOWLY = decision(op=Op.PRUNE, alpha_speed=SPEEDS.index(3))
RETARGET = decision(op=Op.SET_ALPHA_TARGET, alpha_target=HALF)
HELD = [GERMINATE, ADVANCE, ADVANCE, WAIT, WAIT, ADVANCE]  # as early as can be
FASTEST_LIFE = [*HELD, decision(op=Op.FOSSILIZE)]


def episode(**kwargs: object) -> Episode:
    return Episode(make_lifecycle(**kwargs), np.random.default_rng(0))  # type: ignore[arg-type]


def run(game: Episode, decisions: list[np.ndarray], contribution: float = 2.0) -> Episode:
    """Carry out a script from step 1; every slot with alpha on contributes `contribution`."""
    for step, wish in enumerate(decisions, start=1):
        measurement = measure(game.lifecycle, game.rng)
        contributions = np.where(np.isnan(measurement.contribution), np.nan, contribution)
        game.view(step, dataclasses.replace(measurement, contribution=contributions))
        game.act(wish, step)
    return game


def state(lifecycle: Lifecycle) -> dict[str, list[object]]:
    return {name: np.nan_to_num(array, nan=-99.0).tolist() for name, array in vars(lifecycle.table).items()}


def test_the_fastest_life_of_a_seed_module_takes_seven_steps() -> None:
    game = run(episode(), FASTEST_LIFE)
    table = game.lifecycle.table
    assert [c.stage for c in game.changes] == ["GERMINATED", "TRAINING", "BLENDING", "HOLDING", "FOSSILIZED"]
    assert [c.step for c in game.changes] == [1, 2, 3, 6, 7]
    assert (table.stage[0, 0], table.alpha[0, 0], table.age[0, 0]) == (Stage.FOSSILIZED, 1.0, 6)
    assert (game.lifecycle.fossilized[0], game.lifecycle.contributing[0]) == (1, 1)
    assert game.lifecycle.op_counts[0].tolist() == [2, 1, 0, 0, 1, 3]
    assert {c.seed_id for c in game.changes} == {"e0s0"}
    assert [c.contribution for c in game.changes] == [None, None, None, 2.0, 2.0]


def test_a_fossil_with_too_small_a_contribution_is_not_contributing() -> None:
    lifecycle = run(episode(), FASTEST_LIFE, contribution=-3.0).lifecycle
    assert (lifecycle.fossilized[0], lifecycle.contributing[0]) == (1, 0)


@pytest.mark.parametrize(
    ("changes", "advances", "fossilizes"),
    [
        ({}, [True, True, False], True),
        ({"epochs_in_stage": 2}, [False] * 3, True),
        ({"contribution": 0.99}, [True, True, False], False),
        ({"acc_at_stage_start": 29.6}, [False, True, False], True),
    ],
)
def test_strict_gates_require_age_accuracy_and_contribution(
    changes: dict[str, float], advances: list[bool], fossilizes: bool
) -> None:
    """Of a seed in training, one that blends, and one that holds."""
    lifecycle = make_lifecycle(gates="strict")
    lifecycle.table.stage[0] = [Stage.TRAINING, Stage.BLENDING, Stage.HOLDING]
    lifecycle.val_acc[:] = 30.0
    gate_values = {
        "acc_at_stage_start": 29.5,
        "alpha": 1.0,
        "alpha_target": 1.0,
        "epochs_in_stage": 3,
        "contribution": 1.0,
    }
    for name, value in (gate_values | changes).items():
        getattr(lifecycle.table, name)[0] = value
    valid_ops = lifecycle.masks(5).valid[0]
    assert valid_ops[Op.ADVANCE].tolist() == advances
    assert valid_ops[Op.FOSSILIZE].tolist() == [False, False, fossilizes]


def test_a_seed_module_without_a_measurement_cannot_fossilise() -> None:
    game = run(episode(), HELD, contribution=np.nan)
    assert game.lifecycle.table.stage[0, 0] == Stage.HOLDING
    assert not game.lifecycle.masks(7).valid[0, Op.FOSSILIZE].any()


def test_a_pruned_slot_is_free_after_its_cooldown() -> None:
    game = run(episode(), [GERMINATE, WAIT, PRUNE])  # pruned at t = 3
    stages = [int(game.lifecycle.table.stage[0, 0])]
    for step in range(4, 10):
        assert not game.lifecycle.masks(step).valid[0, Op.GERMINATE, 0]
        game.follow([WAIT], step)
        stages.append(int(game.lifecycle.table.stage[0, 0]))
    assert stages == [Stage.EMBARGOED] * 5 + [Stage.RESETTING, Stage.DORMANT]  # ends of t … t + 6
    assert game.lifecycle.masks(10).valid[0, Op.GERMINATE, 0]  # t + 7
    assert [change.event for change in game.changes] == ["germinated", "pruned", "emptied"]
    assert game.lifecycle.pruned[0] == 1
    assert state(game.lifecycle)["serial"] == [[-1, -1, -1]]


def test_a_scheduled_prune_ramps_down_a_seed_module_before_dropping() -> None:
    game = run(episode(), [*HELD, PRUNE_SLOWLY])
    table = game.lifecycle.table
    assert (table.stage[0, 0], table.alpha_mode[0, 0], table.frozen[0, 0]) == (Stage.BLENDING, AlphaMode.DOWN, True)
    assert (table.params[0, 0], table.alpha[0, 0]) == (200, pytest.approx(2 / 3))
    assert not game.lifecycle.masks(8).valid[0, :, 0].any()
    game.follow([WAIT] * 2, 8)
    assert [change.event for change in game.changes[-2:]] == ["prune_scheduled", "pruned"]
    assert (game.changes[-1].step, table.stage[0, 0], table.params[0, 0]) == (9, Stage.EMBARGOED, 0)
    game.follow([WAIT] * 6, 10)
    assert game.lifecycle.masks(16).valid[0, Op.GERMINATE, 0]  # 9 + 7, as after an instant prune


def test_a_partial_alpha_target_returns_a_seed_module_to_blending() -> None:
    raise_target = decision(op=Op.SET_ALPHA_TARGET, alpha_target=FULL)
    game = run(episode(), [*HELD, RETARGET])
    table = game.lifecycle.table
    assert (table.stage[0, 0], table.alpha[0, 0], table.frozen[0, 0]) == (Stage.BLENDING, 0.5, False)
    assert not game.lifecycle.masks(8).valid[0, Op.ADVANCE].any()
    game.follow([raise_target, ADVANCE], 8)
    assert (table.stage[0, 0], table.alpha[0, 0]) == (Stage.HOLDING, 1.0)


def test_changing_only_the_blending_algorithm_starts_no_ramp() -> None:
    gate = decision(op=Op.SET_ALPHA_TARGET, style=GATE_STYLE, alpha_target=FULL)
    game = run(episode(), HELD)
    assert not game.lifecycle.masks(7).mask(HEADS.index("alpha_speed"), gate[:, :6]).any()
    game.follow([gate], 7)
    table = game.lifecycle.table
    assert (table.stage[0, 0], table.alpha_mode[0, 0], table.params[0, 0]) == (Stage.HOLDING, AlphaMode.HOLD, 207)
    assert not game.lifecycle.masks(8).permits(gate)[0]  # nothing is left to change


def test_a_failed_germination_leaves_the_state_unchanged() -> None:
    game = episode()
    game.view(1)
    state_before = state(game.lifecycle)
    game.graft.broken = True
    with pytest.raises(RuntimeError, match="no memory"):
        game.lifecycle.execute(GERMINATE, 1, game.graft)
    assert state(game.lifecycle) == state_before
    assert game.lifecycle.op_counts.sum() == game.lifecycle.germinated.sum() == 0
    game.graft.broken = False
    game.act(GERMINATE, 1)
    assert game.changes[0].seed_id == "e0s0"


def test_a_stopped_environment_does_not_change() -> None:
    game = episode(n_envs=2)
    decisions = np.repeat(GERMINATE, 2, axis=0)
    game.view(1)
    game.act(decisions, 1)
    game.lifecycle.stop(np.array([True, False]))
    state_before = state(game.lifecycle)
    game.view(2)
    assert not game.lifecycle.masks(2).valid[0].any()
    assert game.lifecycle.masks(2).mask(OP, decisions[:, :0])[0].tolist() == [True] + [False] * 5
    game.act(np.concatenate([WAIT, ADVANCE]), 2)
    state_after = state(game.lifecycle)
    assert all(state_before[name][0] == state_after[name][0] for name in state_before)
    assert state_after["stage"][1] != state_before["stage"][1]
    assert game.lifecycle.op_counts.sum(axis=1).tolist() == [1, 2]


def test_ramps_and_cooldowns_stop_when_the_episode_ends() -> None:
    game = run(episode(), [GERMINATE, ADVANCE, ADVANCE])
    game.follow([decision(op=Op.GERMINATE, slot=1), WAIT, decision(op=Op.PRUNE, slot=1)], 4)
    table = game.lifecycle.table
    table.alpha_mode[0, 0], table.steps_done[0, 0] = AlphaMode.UP, 1  # as if the ramp were still on its way
    game.lifecycle.stop(np.array([True]))
    state_before = state(game.lifecycle)
    game.follow([WAIT] * 8, 7)
    assert state(game.lifecycle) == state_before


USED = {
    "wait": (decision(), {"op"}),
    "germinate": (decision(op=Op.GERMINATE, slot=2), {"op", "slot", "blueprint", "style", "tempo", "alpha_target"}),
    "advance": (decision(op=Op.ADVANCE, slot=1), {"op", "slot"}),
    "fossilize": (decision(op=Op.FOSSILIZE), {"op", "slot"}),
    "prune at once": (decision(op=Op.PRUNE), {"op", "slot", "alpha_speed"}),
    "prune by a ramp": (decision(op=Op.PRUNE, alpha_speed=1), {"op", "slot", "alpha_speed", "alpha_curve"}),
    "prune what is not blended": (decision(op=Op.PRUNE, slot=1), {"op", "slot"}),
    "retarget at once": (RETARGET, {"op", "slot", "style", "alpha_target", "alpha_speed"}),
    "retarget by a ramp": (
        decision(op=Op.SET_ALPHA_TARGET, alpha_target=HALF, alpha_speed=2),
        {"op", "slot", "style", "alpha_target", "alpha_speed", "alpha_curve"},
    ),
}


@pytest.mark.parametrize("name", USED)
def test_each_operation_uses_only_its_decision_heads(name: str) -> None:
    """`early` holds a measured seed at full alpha, `mid` a seed in training, `late` none."""
    row, used_heads = USED[name]
    game = run(episode(), HELD).follow([decision(op=Op.GERMINATE, slot=1), decision(op=Op.ADVANCE, slot=1)], 7)
    masks = game.view(9).masks
    assert masks.permits(row)[0]
    assert {HEADS[h] for h in range(len(HEADS)) if masks.mask(h, row[:, :h]).any()} == used_heads


def test_the_velocity_of_a_contribution_needs_two_measurements() -> None:
    game = episode()
    game.lifecycle.table.stage[0, 0] = Stage.BLENDING
    expected = [0.0, 0.3 * 2.0, 0.7 * 0.6 + 0.3 * -1.0]
    for value, velocity in zip([1.0, 3.0, 2.0], expected, strict=True):
        measurement = measure(game.lifecycle, game.rng)
        game.lifecycle.record(dataclasses.replace(measurement, contribution=np.array([[value, np.nan, np.nan]])))
        assert game.lifecycle.table.velocity[0, 0] == pytest.approx(velocity)


def test_a_new_seed_module_inherits_no_state_of_the_pruned_module() -> None:
    game = run(episode(), [*HELD, PRUNE]).follow([*[WAIT] * 6, GERMINATE], 8)
    table = game.lifecycle.table
    fresh_table = SeedTable.empty(1, 1)
    assert game.changes[-1].seed_id == "e0s1"
    for name in ("age", "alpha", "contribution", "velocity", "interaction_sum", "steps_total", "frozen"):
        np.testing.assert_array_equal(getattr(table, name)[0, 0], getattr(fresh_table, name)[0, 0], err_msg=name)
    assert table.previous_stage[0, 0] == Stage.DORMANT


def test_executing_several_environments_equals_executing_them_one_by_one() -> None:
    """Paired scripts: environment i of many equals one environment with the same measurements and decisions."""
    rng = np.random.default_rng(5)
    n_envs = 5
    steps = 25
    batch_game = Episode(make_lifecycle(n_envs, steps), rng)
    single_games = [Episode(make_lifecycle(1, steps), rng) for _ in range(n_envs)]
    for step in range(1, steps + 1):
        view = batch_game.view(step)
        decisions = random_decisions(view.masks, rng)
        for i, game in enumerate(single_games):
            row = {name: array[i : i + 1] for name, array in vars(batch_game.measurement).items()}
            single_view = game.view(step, type(batch_game.measurement)(**row))
            np.testing.assert_array_equal(single_view.observation, view.observation[i : i + 1])
            game.act(decisions[i : i + 1], step)
        batch_game.act(decisions, step)
        for i, game in enumerate(single_games):
            rows = {name: values[i : i + 1] for name, values in state(batch_game.lifecycle).items()}
            assert rows == state(game.lifecycle)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["permissive", "strict"]), st.integers(0, 3), st.integers(1, 25))
@settings(max_examples=30)
def test_random_play_never_breaks_the_lifecycle(rng_seed: int, gates: str, max_seeds: int, steps: int) -> None:
    rng = np.random.default_rng(rng_seed)
    game = Episode(make_lifecycle(4, steps, gates, max_seeds), rng)
    game.play(lambda view: random_decisions(view.masks, rng))
    lifecycle = game.lifecycle
    counts = lifecycle.op_counts
    present_seeds = lifecycle.table.present.sum(axis=1)
    assert (counts.sum(axis=1) == steps).all()
    assert (lifecycle.germinated == counts[:, Op.GERMINATE]).all()
    assert (lifecycle.fossilized == counts[:, Op.FOSSILIZE]).all()
    assert (lifecycle.germinated - lifecycle.pruned == present_seeds).all()
    assert (present_seeds <= (max_seeds or 3)).all()
    assert len({(c.env, c.seed_id) for c in game.changes}) == lifecycle.germinated.sum()


def every_decision(lifecycle: Lifecycle, step: int, rng: np.random.Generator) -> list[tuple[int, int, np.ndarray]]:
    """For every (op, slot) of one environment, a decision whose other heads are as permitted as can be."""
    masks = lifecycle.masks(step)
    decisions = []
    for op in list(Op)[1:]:
        for slot in range(len(lifecycle.slots)):
            row = decision(op=op, slot=slot)
            for head in range(SLOT + 1, len(HEADS)):
                allowed_choices = np.flatnonzero(masks.mask(head, row[:, :head])[0])
                row[0, head] = rng.choice(allowed_choices) if len(allowed_choices) else 0
            decisions.append((op, slot, row))
    return decisions


@given(st.integers(0, 2**32 - 1), st.sampled_from(["permissive", "strict"]))
@settings(max_examples=4)
def test_valid_decisions_change_only_one_slot(rng_seed: int, gates: str) -> None:
    rng = np.random.default_rng(rng_seed)
    game = Episode(make_lifecycle(1, 20, gates), rng)
    for step in range(1, 21):
        view = game.view(step)
        for op, slot, row in every_decision(game.lifecycle, step, rng):
            twin, graft = copy.deepcopy((game.lifecycle, game.graft))
            state_before = state(twin)
            if view.masks.valid[0, op, slot]:
                twin.execute(row, step, graft)
                state_after = state(twin)
                changed_slots = {
                    s for name in state_before for s in range(3) if state_before[name][0][s] != state_after[name][0][s]
                }  # type: ignore[index]
                assert changed_slots == {slot}
            else:
                with pytest.raises(InvalidDecision, match=f"step {step}"):
                    twin.execute(row, step, graft)
                assert state(twin) == state_before
        game.act(random_decisions(view.masks, rng), step)


def test_the_last_step_of_an_episode_allows_only_fossilising() -> None:
    valid_ops = run(episode(steps=7), HELD).lifecycle.masks(7).valid[0]
    assert valid_ops[Op.FOSSILIZE].tolist() == [True, False, False]
    assert not np.delete(valid_ops, Op.FOSSILIZE, axis=0).any()


def test_later_decisions_do_not_change_earlier_masks() -> None:
    game = run(episode(), HELD)
    masks = game.view(7).masks
    game.act(RETARGET, 7)
    assert masks.permits(RETARGET)[0]
    assert masks.mask(HEADS.index("alpha_speed"), RETARGET[:, :6]).all()
    assert not game.lifecycle.masks(8).permits(RETARGET)[0]
    assert masks.sizes == (6, 3, 3, 5, 3, 3, 4, 3)


def permitted_head_by_head(masks: DecisionMasks, decision: list[int]) -> bool:
    """What a decision may say, from the masks' definition: each head given all heads before it."""
    for head, choice in enumerate(decision):
        mask = masks.mask(head, np.array([decision[:head]] * 2, dtype=np.int64).reshape(2, head))[0]
        if not (0 <= choice < len(mask) and mask[choice] if mask.any() else choice == 0):
            return False
    return True


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_a_decision_is_permitted_if_every_head_is_valid_in_turn(rng_seed: int) -> None:
    """Anything may be said, sensible or not, in any state that can be reached."""
    rng = np.random.default_rng(rng_seed)
    game = Episode(make_lifecycle(2, 12), rng)
    for step in range(1, 13):
        view = game.view(step)
        for _ in range(20):
            wish = random_decisions(view.masks, rng)
            heads = rng.integers(0, len(HEADS), 2)
            wish[0, heads] = rng.integers(-1, np.array(view.masks.sizes)[heads] + 1)
            assert view.masks.permits(wish).tolist() == [permitted_head_by_head(view.masks, wish[0].tolist()), True]
        game.act(random_decisions(view.masks, rng), step)
