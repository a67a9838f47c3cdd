"""Positions can matter unless records depend only on rng paths; plans depend on it."""

import msgspec
import pytest
from support.plans.requests import experiment, group, machine, planned

from esper_ab.contracts.machine import TaskFacts, UserReward
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import ControllerSettings, PPOSettings, RewardSettings
from esper_ab.plan.budget import ENOUGH_EPISODES
from esper_ab.plan.positions import positions_could_matter_by
from esper_ab.settings.experiment import AskedArithmetic
from esper_ab.settings.resolve import resolve


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("evaluation", "in held-out accuracy of the trained policy between two groups"),
        ("last-tenth", "in held-out accuracy, averaged over the last tenth of the training episodes, between"),
        ("last-third", "in held-out accuracy, averaged over the last third of the training episodes, between"),
        ("curve-mean", "in held-out accuracy, averaged over all training episodes, between two groups"),
    ],
)
def test_the_estimand_names_the_declared_outcome(outcome: str, words: str) -> None:
    estimand = planned(experiment(outcome_over=outcome), machine()).estimand
    assert words in estimand
    assert ("trained policy" in estimand) == (outcome == "evaluation")


GYM = "gym:Reach-v0"


def notes_on(bounds: tuple[tuple[float, float] | None, ...], controller: str = "ppo") -> str:
    """Return the notes of a plan with environments whose actions have these bounds."""
    outcome = Measure(name="env_return", label="return", better="higher")
    task = TaskFacts(
        name=GYM,
        title="Gymnasium",
        kind="gymnasium",
        measures=TaskMeasures(outcome=outcome, measures=()),
        action_bounds=bounds,
        step_s=1e-4,
    )
    this_machine = machine(tasks=(task,), rewards=("env",), controllers=("random",))
    groups = tuple(
        group(name, reward=RewardSettings(mode="env"), controller=ControllerSettings(name=controller))
        for name in ("a", "b")
    )
    return " ".join(planned(experiment(task=GYM, groups=groups, margin=1.0), this_machine).notes)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (((100.0, 200.0),), "0 (100 to 200) do not"),
        (((-1.0, 1.0), None, (-0.01, 0.01)), "2 (-0.01 to 0.01) do not"),
        (((-1.0, 1.0), (0.0, 1.0)), "1 (0 to 1) do not"),
        (((-1.0, 0.5),), "0 (-1 to 0.5) do not"),
        (((-100.0, 100.0),), "0 (-100 to 100) do not"),
        (((0.0, 1.0),) * 5, "0 (0 to 1), 1 (0 to 1), 2 (0 to 1), 3 (0 to 1) and 1 more do not"),
    ],
)
def test_a_note_warns_of_unsuitable_action_bounds_with_a_remedy(
    bounds: tuple[tuple[float, float] | None, ...], words: str
) -> None:
    notes = notes_on(bounds)
    assert f"Action bounds: {words} fit" in notes
    assert "gymnasium.wrappers.RescaleAction" in notes
    assert "Action bounds" not in notes_on(bounds, controller="random")


@pytest.mark.parametrize("bounds", [(), (None,), ((-1.0, 1.0), (-2.0, 2.0)), ((-10.0, 10.0),), ((-1.0, 3.0),)])
def test_suitable_action_bounds_cause_no_note(bounds: tuple[tuple[float, float] | None, ...]) -> None:
    assert "Action bounds" not in notes_on(bounds)


def groups_a_and_b(**settings: object) -> dict[str, object]:
    return {"groups": (group("a"), group("b", **settings))}


def with_unequal_discounts(**reward: object) -> dict[str, object]:
    return groups_a_and_b(ppo=PPOSettings(gamma=0.9), reward=RewardSettings(**reward))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "appears", "changes"),
    [
        ("cannot show that there is none", True, {"seeds": 6}),
        ("cannot show that there is none", True, {"seeds": 14}),
        ("cannot show that there is none", False, {"seeds": 15}),
        ("cannot show that there is none", False, {"seeds": 5}),
        ("cannot show that there is none", False, {"seeds": 6, "open_ended": True}),
        ("early learning of a, b", True, {"episodes": 1}),
        ("early learning", False, {"episodes": ENOUGH_EPISODES // 4}),
        ("early learning", False, {"episodes": 1} | groups_a_and_b(controller=ControllerSettings(name="wait"))),
        ("early learning", False, {"episodes": 1} | groups_a_and_b(ppo=PPOSettings(lr=0.0))),  # it must not learn
        # unequal discounts matter to every reward with a potential
        ("b: ppo.gamma=0.9 differs from reward.gamma=0.995", True, with_unequal_discounts(mode="shaped")),
        ("b: ppo.gamma=0.9 differs from reward.gamma=0.995", True, with_unequal_discounts(mode="simplified")),
        ("differs from reward.gamma", False, with_unequal_discounts(mode="sparse")),
        ("differs from reward.gamma", False, with_unequal_discounts(mode="simplified", disable_pbrs=True)),
        ("differs from reward.gamma", False, with_unequal_discounts(mode="shaped", pbrs_weight=0.0)),
        (
            "differs from reward.gamma",
            False,
            with_unequal_discounts(mode="shaped", family="loss"),
        ),  # its stage term is never neutral
    ],
)
def test_each_note_appears_only_if_its_condition_holds(words: str, appears: bool, changes: dict[str, object]) -> None:
    assert (words in "\n".join(planned(experiment(n_envs=4, **changes), machine()).notes)) is appears


MINE = "mine.py:reward"
USER = UserReward(reference=MINE, sha256="0" * 64, problem="")
UNEQUAL = msgspec.structs.replace(
    machine(), devices=tuple(msgspec.structs.replace(device, title=device.name) for device in machine().devices)
)
UNEQUAL_WORDS = "the CPU cores are of different kinds"
# Groups that train at the same time on fewer cores have lanes of their own, which share the cores.
FOUR_GROUPS = {"groups": tuple(map(group, "abcd"))}
TWO_CORES = msgspec.structs.replace(machine(), devices=machine().devices[:2])
TWO_UNEQUAL_CORES = msgspec.structs.replace(UNEQUAL, devices=UNEQUAL.devices[:2])


@pytest.mark.parametrize(
    ("changes", "this_machine", "reason"),
    [
        ({}, machine(), ""),
        (
            {"groups": (group("a"), group("b", reward=RewardSettings(mode=MINE)))},
            machine(user_rewards=(USER,)),
            "the reward mine.py:reward is not in the catalogue",
        ),
        ({}, machine(gpus=2), "cuda:0 is not a CPU core"),
        ({"devices": ("cpu:0", "cpu:1")}, machine(gpus=2), ""),
        ({}, UNEQUAL, UNEQUAL_WORDS),
        (FOUR_GROUPS, TWO_CORES, ""),
        (FOUR_GROUPS | {"devices": ("cpu:0", "cpu:1")}, TWO_CORES, ""),
        (FOUR_GROUPS | {"devices": ("cpu:2", "cpu:3"), "placement": "share"}, TWO_UNEQUAL_CORES, UNEQUAL_WORDS),
        ({"devices": ("cpu:0",), "placement": "share"}, UNEQUAL, ""),
        ({"arithmetic": AskedArithmetic(deterministic=False)}, machine(), "the arithmetic is not deterministic"),
    ],
)
def test_positions_can_matter_under_each_source_of_nondeterminism(changes, this_machine, reason):
    request = experiment(**{"seeds": 10} | changes)
    assert positions_could_matter_by(resolve(request, this_machine, "x", 16), this_machine) == reason
    plan = planned(request, this_machine)
    assert plan.design.positions_matter is bool(reason)
    assert plan.design.adjusted is bool(reason)
    assert any("scheduling cannot affect results" in note for note in plan.notes) is not bool(reason)


def test_any_run_order_is_accepted_if_positions_cannot_matter():
    """Any draw of orders is accepted, and all sets of lanes are used."""
    for rng_seed in range(12):
        shuffled_request = experiment(tuple("abcde"), seeds=6, order="shuffled", rng_seed=rng_seed)
        assert not planned(shuffled_request, machine(5)).design.adjusted
    fixed_plan = planned(experiment(seeds=6, order="fixed"), machine())
    assert not any("no verdict is possible" in note for note in fixed_plan.notes)
    assert any("the fixed order confounds nothing" in note for note in fixed_plan.notes)
    loose_arithmetic = AskedArithmetic(deterministic=False)
    six = {"names": tuple("abcdef"), "seeds": 6}
    assert len(planned(experiment(**six, arithmetic=loose_arithmetic), machine(12)).lanes) == 6
    assert len(planned(experiment(**six), machine(12)).lanes) == 12
    odd_plan = planned(experiment(seeds=7), machine())
    assert not any("not a multiple" in note for note in odd_plan.notes)
