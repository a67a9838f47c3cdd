"""The contract of every controller: valid decisions that depend only on the episode and its uniforms."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from support.worlds.growth_world import BLUEPRINTS, SLOTS, Episode, make_lifecycle, measure

from esper_ab.contracts.catalog import entry, names
from esper_ab.contracts.records import SeedEvent
from esper_ab.contracts.settings import ControllerSettings
from workers.environments import Controller
from workers.kinds.growth.controllers import heuristic, looking
from workers.kinds.growth.controllers.random import choose
from workers.kinds.growth.vocabulary import HEADS, OP, SLOT, Op, Stage

ENVS = 4


def make(name: str, *schedule: str) -> Controller:
    build: Callable[..., Controller] = entry("workers.kinds.growth.controllers", name, "make")
    return build(ControllerSettings(name=name, schedule=schedule), SLOTS, BLUEPRINTS)


def play(controller: Controller, rng_seed: int, gates: str = "permissive", max_seeds: int = 0) -> Episode:
    """Play an episode; measurements and uniforms have separate random streams, so decisions cannot shift them."""
    uniforms = np.random.default_rng((rng_seed, 1))
    game = Episode(make_lifecycle(ENVS, 25, gates, max_seeds), np.random.default_rng((rng_seed, 2)))
    controller.begin_episode(ENVS)
    return game.play(lambda view: controller.decide(view, uniforms.random((ENVS, len(HEADS)))))


@pytest.fixture(params=names("workers.kinds.growth.controllers"))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("gates", ["permissive", "strict"])
@pytest.mark.parametrize("max_seeds", [0, 1])
def test_every_decision_of_an_episode_is_valid(name: str, gates: str, max_seeds: int) -> None:
    controller = make(name)
    for rng_seed in range(3):
        game = play(controller, rng_seed, gates=gates, max_seeds=max_seeds)  # execute refuses invalid decisions
        assert (game.lifecycle.op_counts.sum(axis=1) == 25).all()


def test_decisions_depend_neither_on_earlier_episodes_nor_on_global_randomness(name: str) -> None:
    used_controller = make(name)
    fresh_controller = make(name)
    assert isinstance(used_controller, Controller)
    play(used_controller, 1)
    np.random.seed(0)
    changes = play(used_controller, 2).changes
    np.random.seed(1)
    assert play(fresh_controller, 2).changes == changes


def test_a_controller_chooses_wait_in_stopped_environments(name: str) -> None:
    controller = make(name)
    rng = np.random.default_rng(0)
    game = Episode(make_lifecycle(ENVS), rng)
    controller.begin_episode(ENVS)
    game.lifecycle.stop(np.array([True, False, True, False]))
    for step in range(1, 26):
        decisions = controller.decide(game.view(step), rng.random((ENVS, len(HEADS))))
        assert not decisions[[0, 2]].any()
        game.act(decisions, step)


def test_the_wait_controller_never_changes_a_slot() -> None:
    assert play(make("wait"), 0).changes == []


def test_the_random_controller_uses_every_op_and_slot() -> None:
    games = [play(make("random"), rng_seed) for rng_seed in range(8)]
    assert (sum(game.lifecycle.op_counts.sum(axis=0) for game in games) > 0).all()
    assert {change.slot for game in games for change in game.changes} == set(SLOTS)


def test_choose_picks_each_valid_option_equally_often() -> None:
    mask = np.array([[False, True, True, False, True]])
    grid = (np.arange(300) + 0.5) / 300
    choices = [int(choose(mask, np.array([u]))[0]) for u in grid]
    assert choices == sorted(choices)
    assert [choices.count(i) for i in range(5)] == [0, 100, 100, 0, 100]
    assert choose(mask, np.array([1.0 - 1e-16])).tolist() == [4]
    assert choose(np.zeros((1, 5), dtype=bool), np.array([0.7])).tolist() == [0]


# --- schedule ---------------------------------------------------------------------------------------------------------


def story(game: Episode, env: int = 0) -> list[tuple[int, str, str]]:
    return [(change.step, change.event, change.slot) for change in game.changes if change.env == env]


def test_the_default_schedule_fossilises_a_module_in_every_slot() -> None:
    game = play(make("schedule"), 0)
    assert story(game)[:3] == [(1, "germinated", "early"), (2, "germinated", "mid"), (3, "germinated", "late")]
    assert (game.lifecycle.table.stage == Stage.FOSSILIZED).all()
    assert {change.blueprint for change in game.changes} == {"conv_light"}
    assert story(game, 0) == story(game, 3)


def test_a_scheduled_op_is_executed_at_its_step_or_soon_after() -> None:
    plan = (
        "2:germinate:mid:blueprint=norm:tempo=3:style=linear_multiply:alpha_target=0.5",
        "2:advance:mid",
        "3:advance:mid",
        "8:set_alpha_target:mid:style=linear_multiply:alpha_target=1.0:alpha_speed=3:alpha_curve=cosine",
        "20:prune:mid:alpha_speed=3",
    )
    game = play(make("schedule", *plan), 0)
    assert {change.slot for change in game.changes} == {"mid"}
    assert [(step, event) for step, event, _ in story(game)] == [
        (2, "germinated"),
        (3, "advanced"),
        (4, "advanced"),
        (8, "retargeted"),
        (20, "prune_scheduled"),
        (22, "pruned"),
    ]


def test_a_gradual_prune_before_blending_is_executed_at_once() -> None:
    plan = ("1:germinate:early:blueprint=norm", "3:prune:early:alpha_speed=8:alpha_curve=sigmoid")
    assert story(play(make("schedule", *plan), 0))[:2] == [(1, "germinated", "early"), (3, "pruned", "early")]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("germinate:early", "step:op:slot"),
        ("0:germinate:early", "steps from 1"),
        ("x:germinate:early", "steps from 1"),
        ("1:grow:early", "no op 'grow'; choose from germinate"),
        ("1:wait:early", "no op 'wait'"),
        ("1:germinate:nowhere", "no slot 'nowhere'; choose from early, mid, late"),
        ("1:germinate:early:blueprint=conv_huge", "no blueprint 'conv_huge'; choose from norm, conv_light"),
        ("1:germinate:early:tempo=4", "no tempo '4'; choose from 3, 5, 8"),
        ("1:germinate:early:tempo", "'tempo' is not head=value"),
        ("1:germinate:early:alpha_speed=3", "germinate takes blueprint, style, tempo, alpha_target"),
        ("1:advance:early:tempo=3", "advance takes no further heads"),
        ("1:set_alpha_target:early:alpha_target=0.5", "needs style="),
        ("1:germinate:early:tempo=3:tempo=5", "tempo is given twice"),
        (f"{10**9}:germinate:early", "steps from 1 to 999999999"),
        (f"{'9' * 5000}:germinate:early", "steps from 1 to 999999999"),
    ],
)
def test_an_invalid_schedule_entry_is_refused_with_the_reason(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="schedule entry") as refusal:
        make("schedule", "1:germinate:early", line)
    assert complaint in str(refusal.value)
    assert repr(line) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "enabled_blueprint", "complaint"),
    [
        ("schedule", "norm", "no blueprint 'conv_light'; choose from norm"),
        ("heuristic", "bottleneck", "conv_light, conv_heavy"),
        ("looking", "norm", "conv_heavy, conv_light"),
    ],
)
def test_a_controller_is_refused_if_its_blueprints_are_disabled(
    name: str, enabled_blueprint: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        entry("workers.kinds.growth.controllers", name, "make")(ControllerSettings(), SLOTS, (enabled_blueprint,))


# --- heuristic and looking --------------------------------------------------------------------------------------------


def steady(name: str, steps: int, max_seeds: int = 0, drift: float = 0.0, **constant_values: float) -> Episode:
    """The episode of one host with constant losses, or whose seed modules contribute a constant."""
    controller = make(name)
    game = Episode(make_lifecycle(1, steps, max_seeds=max_seeds), np.random.default_rng(0))
    controller.begin_episode(1)
    for step in range(1, steps + 1):
        measurement = measure(game.lifecycle, game.rng)
        constants = {
            name: np.where(np.isnan(getattr(measurement, name)), np.nan, value)
            for name, value in constant_values.items()
        }
        measurement = dataclasses.replace(measurement, val_acc=np.array([30.0 + drift * step]), **constants)
        game.act(controller.decide(game.view(step, measurement), np.zeros((1, len(HEADS)))), step)
    return game


def settled(contribution: float, steps: int = 40, drift: float = 0.0) -> Episode:
    """The episode of a host whose loss no longer falls."""
    return steady("heuristic", steps, drift=drift, val_loss=2.0, contribution=contribution)


def changes(game: Episode, event: str) -> list[SeedEvent]:
    return [change for change in game.changes if change.event == event]


def test_the_heuristic_fills_slots_in_order_with_contributing_modules() -> None:
    game = settled(contribution=2.0)
    assert game.lifecycle.fossilized[0] == 3
    births = changes(game, "germinated")
    assert [birth.slot for birth in births] == list(SLOTS)
    assert [birth.blueprint for birth in births] == ["conv_light", "conv_heavy", "norm"]  # rotation, as far as enabled
    assert births[0].step == heuristic.MIN_STEP
    ends = [change.step for change in changes(game, "fossilized")]
    assert all(end < birth.step for end, birth in zip(ends, births[1:], strict=False))  # one at a time


def test_the_heuristic_pauses_after_pruning_a_useless_module() -> None:
    game = settled(contribution=0.4)
    assert game.lifecycle.fossilized[0] == 0
    prunes = changes(game, "pruned")
    births = changes(game, "germinated")
    assert len(prunes) >= 2
    gaps = [birth.step - prune.step for prune, birth in zip(prunes, births[1:], strict=False)]
    assert gaps == [heuristic.EMBARGO_STEPS] * len(gaps)
    assert [birth.slot for birth in births[:3]] == ["early", "mid", "early"]  # first empty one; the pruned slot cools


def test_the_heuristic_prunes_even_a_contributing_module_while_accuracy_falls() -> None:
    game = settled(contribution=5.0, drift=-0.1)
    assert game.lifecycle.fossilized[0] == 0
    assert game.lifecycle.pruned[0] > 0


def test_the_heuristic_penalises_a_blueprint_for_every_prune() -> None:
    controller = make("heuristic")
    assert isinstance(controller, heuristic.Heuristic)
    controller.begin_episode(1)
    for next_blueprint, penalties, place in ((0, (3.0, 0.0, 3.0), 1), (0, (5.0, 4.0, 3.5), 2), (2, (0.0, 0.0, 3.0), 0)):
        controller._next[0], controller._penalty[0] = next_blueprint, penalties
        assert controller._place().tolist() == [place]


def test_the_heuristic_finds_its_seed_module_in_any_slot() -> None:
    game = settled(contribution=2.0, steps=6)  # germinated at 5; 6 is the last step
    table = game.lifecycle.table
    assert table.stage[0].tolist() == [Stage.GERMINATED, Stage.DORMANT, Stage.DORMANT]
    for array in vars(table).values():
        array[:] = array[:, [1, 2, 0]]
    later_episode = Episode(make_lifecycle(1, 25), game.rng)
    view = later_episode.view(7)
    later_episode.lifecycle.table = table
    controller = make("heuristic")
    controller.begin_episode(1)
    view = dataclasses.replace(view, table=table, masks=later_episode.lifecycle.masks(7))
    decision = controller.decide(view, np.zeros((1, len(HEADS))))
    assert (decision[0, OP], decision[0, SLOT]) == (Op.ADVANCE, 2)


@pytest.mark.parametrize(
    ("train_loss", "val_loss", "slot"), [(1.35, 1.40, "early"), (1.10, 1.15, "mid"), (1.10, 1.30, "late")]
)
def test_the_looking_controller_picks_the_slot_that_the_losses_suggest(
    train_loss: float, val_loss: float, slot: str
) -> None:
    game = steady("looking", 25, max_seeds=1, train_loss=train_loss, val_loss=val_loss)
    first_step = looking.LOOK_STEP
    assert story(game)[:2] == [(first_step, "germinated", slot), (first_step + 1, "advanced", slot)]
    assert game.lifecycle.table.stage[0, SLOTS.index(slot)] == Stage.HOLDING
