"""Facts for rewards: recorded before a decision and compared with the previous one."""

import copy
import dataclasses
import itertools
import operator

import numpy as np
import pytest
from support.worlds.growth_world import Episode, decision, make_lifecycle, measure, random_decisions

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.facts import StepFacts
from workers.kinds.growth.reward_terms import potential
from workers.kinds.growth.rules.facts import FactsMemory
from workers.kinds.growth.vocabulary import Op, Stage

HOST = 1000
SETTINGS = RewardSettings()
GERMINATE = decision(op=Op.GERMINATE, slot=1, blueprint=1, style=1, tempo=0, alpha_target=2)
ADVANCE = decision(op=Op.ADVANCE, slot=1)
WAIT = decision()
LIFE = [GERMINATE, ADVANCE, ADVANCE, WAIT, WAIT, ADVANCE, decision(op=Op.FOSSILIZE, slot=1), WAIT]


def play(decisions: list[np.ndarray]) -> list[StepFacts]:
    game = Episode(make_lifecycle(1), np.random.default_rng(0))
    memory = FactsMemory(1, 3, HOST, SETTINGS)
    facts = []
    for step, wish in enumerate(decisions, start=1):
        measurement = measure(game.lifecycle, game.rng)
        contribution = np.where(np.isnan(measurement.contribution), np.nan, 2.5)
        accuracy_off = measurement.val_acc - np.nansum(contribution, axis=1)
        measurement = dataclasses.replace(measurement, contribution=contribution, all_off_acc=accuracy_off)
        view = game.view(step, measurement)
        facts.append(memory.step_facts(game.lifecycle, view.signals, measurement, wish, step))
        game.act(wish, step)
    return facts


ALPHAS = [0.0, 0.0, 0.0, 1 / 3, 2 / 3, 1.0, 1.0, 1.0]
EXPECTED = {  # of every decision: of its environment, or of the slot with the seed
    "op": [1, 5, 5, 0, 0, 5, 4, 0],
    "slot": [1, 1, 1, -1, -1, 1, 1, -1],
    "total_params": [HOST] + [HOST + 200] * 7,
    "fossilized": [0] * 7 + [1],
    "contributing": [0] * 7 + [1],
    "effective_seed_params": [0.0] + [SETTINGS.base_slot_rent_ratio * HOST + alpha * 200 for alpha in ALPHAS[1:]],
    "alpha_delta_sq_sum": [0.0, *((now - was) ** 2 * 200 / HOST for was, now in itertools.pairwise(ALPHAS))],
    "seeds.stage": [1, 2, 3, 4, 4, 4, 6, 7],
    "seeds.age": [0, 1, 2, 3, 4, 5, 6, 7],
    "seeds.epochs_in_stage": [0, 1, 1, 1, 2, 3, 1, 1],
    "seeds.present": [False] + [True] * 7,
    "seeds.contribution": [np.nan] * 3 + [2.5] * 5,
    "seeds.total_improvement": [0.0] * 3 + [2.5] * 5,
}


@pytest.mark.parametrize("fact", EXPECTED)
def test_the_facts_of_a_seed_module_equal_the_expected_table(fact: str) -> None:
    values = np.array([operator.attrgetter(fact)(facts)[0] for facts in play(LIFE)])
    values_of_slot = values[:, 1] if fact.startswith("seeds.") else values
    assert values_of_slot.tolist() == pytest.approx(EXPECTED[fact], nan_ok=True)


def test_facts_contain_the_previous_decision() -> None:
    facts = play(LIFE)
    assert np.isnan(facts[0].acc_delta[0])
    assert facts[1].seeds.acc_at_germination[0, 1] == facts[0].val_acc[0]
    assert facts[0].seeds.potential_before.tolist() == facts[1].seeds.potential_before.tolist() == [[0.0, 0.0, 0.0]]
    for facts_before, facts_after in itertools.pairwise(facts):
        np.testing.assert_array_equal(facts_after.seeds.potential_before, potential(facts_before.seeds, SETTINGS))
    assert facts[2].seeds.potential_before[0, 1] == pytest.approx(1.3)  # GERMINATED, one epoch


def test_executing_a_decision_does_not_change_earlier_facts() -> None:
    rng = np.random.default_rng(7)
    game = Episode(make_lifecycle(4, 20), rng)
    memory = FactsMemory(4, 3, HOST, SETTINGS)
    for step in range(1, 21):
        view = game.view(step)
        decisions = random_decisions(view.masks, rng)
        facts = memory.step_facts(game.lifecycle, view.signals, game.measurement, decisions, step)
        copied_facts = copy.deepcopy(facts)
        game.act(decisions, step)
        np.testing.assert_equal(vars(facts.seeds), vars(copied_facts.seeds))
        np.testing.assert_array_equal(
            (facts.fossilized, facts.contributing), (copied_facts.fossilized, copied_facts.contributing)
        )


def test_a_pruned_slot_keeps_its_potential() -> None:
    facts = play([GERMINATE, WAIT, decision(op=Op.PRUNE, slot=1), WAIT])
    assert facts[3].seeds.stage[0, 1] == Stage.EMBARGOED
    assert facts[3].seeds.potential_before[0, 1] == pytest.approx(1.6)
    assert facts[3].total_params[0] == HOST


def test_a_diverged_host_has_no_improvement() -> None:
    game = Episode(make_lifecycle(2), np.random.default_rng(0))
    game.view(1)
    game.lifecycle.stop(np.array([True, False]))
    accuracies = {"val_acc": np.array([np.nan, 30.0]), "all_off_acc": np.array([np.nan, 29.0])}
    broken_measurement = dataclasses.replace(game.measurement, **accuracies)
    signals = game.view(2, broken_measurement).signals
    memory = FactsMemory(2, 3, HOST, SETTINGS)
    facts = memory.step_facts(game.lifecycle, signals, broken_measurement, np.repeat(decision(), 2, axis=0), 2)
    assert facts.seeds.total_improvement[:, 0].tolist() == [0.0, 1.0]
    assert np.isfinite(facts.val_acc).all()
