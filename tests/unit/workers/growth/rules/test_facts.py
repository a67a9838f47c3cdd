"""Facts for rewards: taken before the decision, compared with the decision before."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from support.growth_world import Episode, decision, make_lifecycle, measure, random_decisions

from esper_ab.contracts.settings import RewardSettings
from workers.facts import StepFacts
from workers.growth.rules.facts import FactsMemory
from workers.reward_terms import potential
from workers.vocabulary import Op, Stage

HOST = 1000
SETTINGS = RewardSettings()
LIFE = [
    decision(op=Op.GERMINATE, slot=1, blueprint=1, style=1, tempo=0, alpha_target=2),
    decision(op=Op.ADVANCE, slot=1),
    decision(op=Op.ADVANCE, slot=1),
    decision(),
    decision(),
    decision(op=Op.ADVANCE, slot=1),
    decision(op=Op.FOSSILIZE, slot=1),
    decision(),
]


def play(decisions: list[np.ndarray]) -> list[StepFacts]:
    game = Episode(make_lifecycle(1), np.random.default_rng(0))
    memory = FactsMemory(1, 3, HOST, SETTINGS)
    facts = []
    for step, wish in enumerate(decisions, start=1):
        reading = measure(game.lifecycle, game.rng)
        contribution = np.where(np.isnan(reading.contribution), np.nan, 2.5)
        reading = dataclasses.replace(
            reading, contribution=contribution, all_off_acc=reading.val_acc - np.nansum(contribution, axis=1)
        )
        view = game.view(step, reading)
        facts.append(memory.step_facts(game.lifecycle, view.signals, reading, wish, step))
        game.act(wish, step)
    return facts


def test_facts_of_a_life() -> None:
    facts = play(LIFE)
    assert [int(f.op[0]) for f in facts] == [1, 5, 5, 0, 0, 5, 4, 0]
    assert [int(f.slot[0]) for f in facts] == [1, 1, 1, -1, -1, 1, 1, -1]
    assert [int(f.seeds.stage[0, 1]) for f in facts] == [1, 2, 3, 4, 4, 4, 6, 7]
    assert [int(f.seeds.age[0, 1]) for f in facts] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [int(f.seeds.epochs_in_stage[0, 1]) for f in facts] == [0, 1, 1, 1, 2, 3, 1, 1]
    assert [bool(f.seeds.present[0, 1]) for f in facts] == [False] + [True] * 7
    assert [int(f.total_params[0]) for f in facts] == [HOST] + [HOST + 200] * 7
    assert [int(f.fossilized[0]) for f in facts] == [0] * 7 + [1]
    assert [int(f.contributing[0]) for f in facts] == [0] * 7 + [1]
    assert [f.seeds.total_improvement[0, 1] for f in facts] == pytest.approx([0.0] * 3 + [2.5] * 5)
    assert np.isnan(facts[0].acc_delta[0])
    assert np.isnan(facts[2].seeds.contribution[0, 1])
    assert facts[3].seeds.contribution[0, 1] == 2.5
    assert facts[1].seeds.acc_at_germination[0, 1] == facts[0].val_acc[0]


def test_rent_and_shock_follow_alpha() -> None:
    facts = play(LIFE)
    alphas = [0.0, 0.0, 0.0, 1 / 3, 2 / 3, 1.0, 1.0, 1.0]
    rents = [0.0] + [SETTINGS.base_slot_rent_ratio * HOST + alpha * 200 for alpha in alphas[1:]]
    assert [f.effective_seed_params[0] for f in facts] == pytest.approx(rents)
    shocks = [0.0, *((now - before) ** 2 * 200 / HOST for before, now in itertools.pairwise(alphas))]
    assert [f.alpha_delta_sq_sum[0] for f in facts] == pytest.approx(shocks)


def test_potential_before_is_that_of_the_decision_before() -> None:
    facts = play(LIFE)
    assert facts[0].seeds.potential_before.tolist() == facts[1].seeds.potential_before.tolist() == [[0.0, 0.0, 0.0]]
    for before, now in itertools.pairwise(facts):
        np.testing.assert_array_equal(now.seeds.potential_before, potential(before.seeds, SETTINGS))
    assert facts[2].seeds.potential_before[0, 1] == pytest.approx(1.3)  # GERMINATED, one epoch


def test_facts_do_not_change_when_the_decision_is_executed() -> None:
    rng = np.random.default_rng(7)
    game = Episode(make_lifecycle(4, 20), rng)
    memory = FactsMemory(4, 3, HOST, SETTINGS)
    for step in range(1, 21):
        view = game.view(step)
        decisions = random_decisions(view.masks, rng)
        facts = memory.step_facts(game.lifecycle, view.signals, game.measurement, decisions, step)
        kept = {name: np.copy(array) for name, array in vars(facts.seeds).items()}
        totals = (facts.fossilized.copy(), facts.contributing.copy())
        game.act(decisions, step)
        for name, array in kept.items():
            np.testing.assert_array_equal(getattr(facts.seeds, name), array, err_msg=name)
        np.testing.assert_array_equal((facts.fossilized, facts.contributing), totals)


def test_a_pruned_slot_remembers_what_it_owes() -> None:
    facts = play([LIFE[0], decision(), decision(op=Op.PRUNE, slot=1), decision()])
    assert facts[3].seeds.stage[0, 1] == Stage.EMBARGOED
    assert facts[3].seeds.potential_before[0, 1] == pytest.approx(1.6)
    assert facts[3].total_params[0] == HOST


def test_a_diverged_host_has_no_improvement() -> None:
    game = Episode(make_lifecycle(2), np.random.default_rng(0))
    game.view(1)
    game.lifecycle.stop(np.array([True, False]))
    broken = dataclasses.replace(
        game.measurement, val_acc=np.array([np.nan, 30.0]), all_off_acc=np.array([np.nan, 29.0])
    )
    view = game.view(2, broken)
    facts = FactsMemory(2, 3, HOST, SETTINGS).step_facts(
        game.lifecycle, view.signals, broken, np.zeros((2, 8), dtype=np.int64), 2
    )
    assert facts.seeds.total_improvement[:, 0].tolist() == [0.0, 1.0]
    assert np.isfinite(facts.val_acc).all()
