"""Rules of single modes that the golden cases, with one slot and one step, cannot show."""

import math
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from support.reward_facts import NAN, make_facts, random_facts

from esper_ab.contracts.settings import RewardSettings
from workers.reward_terms import blank_absent
from workers.rewards import minimal, shaped, simplified, sparse
from workers.vocabulary import Op, Stage

SETTINGS = RewardSettings()


def terms(shape, settings=SETTINGS, **values):
    return SimpleNamespace(**shaped.terms(make_facts(shape, **values), settings))


def test_shaped_refuses_another_gamma():
    facts = make_facts()
    with pytest.raises(ValueError, match=r"gamma = 0\.995, not 0\.99$"):
        shaped.reward(facts, RewardSettings(gamma=0.99))
    with pytest.raises(ValueError, match="gamma"):
        shaped.reward(facts, RewardSettings(gamma=0.99, family="loss"))


def test_attribution_is_summed_over_slots():
    both = terms((1, 2), present=True, stage=Stage.BLENDING, contribution=[4.0, -3.0], total_improvement=2.0)
    assert both.attribution[0] == pytest.approx(0.5 * 4.0 - 3.0)


def test_unmeasured_seeds_share_one_proxy():
    for n_seeds in (1, 2, 3):
        present = [slot < n_seeds for slot in range(3)]
        found = terms((1, 3), present=present, stage=Stage.TRAINING, acc_delta=2.0)
        assert found.attribution[0] == pytest.approx(0.3 * 2.0)


def test_no_proxy_for_a_fall_or_at_the_first_step():
    for acc_delta in (-2.0, NAN):
        assert terms((1, 1), present=True, stage=Stage.TRAINING, acc_delta=acc_delta).attribution[0] == 0.0


def test_prune_and_fossilize_override_only_the_slot_acted_on():
    values = {"present": True, "stage": Stage.HOLDING, "contribution": [2.0, 6.0], "total_improvement": 3.0}
    assert terms((1, 2), op=Op.PRUNE, slot=1, **values).attribution[0] == pytest.approx(1.0 - 3.0)
    values["total_improvement"] = [-1.0, -1.0]
    kept = 0.5 * 2.0 / (1.0 + math.exp(3.0))
    assert terms((1, 2), op=Op.FOSSILIZE, slot=1, **values).attribution[0] == pytest.approx(kept)


def test_action_shaping_belongs_to_the_slot_acted_on():
    values = {"present": [True, False], "stage": Stage.HOLDING, "age": 9, "contribution": -2.0}
    assert terms((1, 2), op=Op.PRUNE, slot=0, **values).action_shaping[0] == pytest.approx(0.3 - 0.005)
    assert terms((1, 2), op=Op.PRUNE, slot=1, **values).action_shaping[0] == pytest.approx(-0.2 - 0.005)
    assert terms((1, 2), op=Op.GERMINATE, slot=1, **values).action_shaping[0] == pytest.approx(0.2985 - 0.02)
    assert terms((1, 2), op=Op.GERMINATE, slot=0, **values).action_shaping[0] == pytest.approx(-0.3 - 0.02)
    assert terms((1, 2), op=Op.ADVANCE, slot=0, **values).action_shaping[0] == 0.0
    assert terms((1, 2), **values).action_shaping[0] == 0.0


def test_a_prune_before_the_first_validation_is_charged():
    values = {"op": Op.PRUNE, "slot": 0, "present": True, "stage": Stage.GERMINATED}
    assert terms((1, 1), age=0, **values).action_shaping[0] == pytest.approx(-0.3 - 0.005)
    assert terms((1, 1), age=1, **values).action_shaping[0] == pytest.approx(-0.005)


def test_blank_absent_forgets_all_but_what_is_owed():
    facts = random_facts(np.random.default_rng(23), (40, 3))
    blank, empty = blank_absent(facts.seeds), blank_absent(make_facts((40, 3)).seeds)
    for field in fields(blank):
        now, given = getattr(blank, field.name), getattr(facts.seeds, field.name)
        expected = given if field.name == "potential_before" else getattr(empty, field.name)
        np.testing.assert_array_equal(now, np.where(blank.present, given, expected))


def test_waiting_is_warned_of_in_every_holding_slot():
    values = {"present": True, "stage": Stage.HOLDING, "contribution": 2.0, "total_improvement": 3.0}
    waiting = terms((1, 3), epochs_in_stage=[1, 2, 3], **values)
    assert waiting.holding_warning[0] == pytest.approx(-1.0 - 3.0)
    assert terms((1, 3), epochs_in_stage=[1, 2, 3], op=Op.FOSSILIZE, slot=0, **values).holding_warning[0] == 0.0


def test_blending_warning_and_synergy_are_summed_over_slots():
    found = terms(
        (1, 2), present=True, stage=Stage.BLENDING, epochs_in_stage=[1, 9], total_improvement=-1.0, interaction_sum=2.0
    )
    assert found.blending_warning[0] == pytest.approx(-0.15 - 0.40)
    assert found.synergy[0] == pytest.approx(0.2 * math.tanh(1.0))


def test_an_unmeasured_network_is_neither_punished_nor_discounted():
    values = {"present": True, "stage": Stage.BLENDING, "contribution": 4.0, "total_improvement": NAN}
    found = terms((1, 1), **values)
    assert found.attribution[0] == pytest.approx(2.0)
    assert found.blending_warning[0] == 0.0


def test_rent_falls_back_to_parameters_added():
    assert terms((1, 1), total_params=3000, effective_seed_params=NAN).rent[0] == pytest.approx(-0.5 * math.log(3.0))
    assert terms((1, 1), total_params=3000, effective_seed_params=0.0).rent[0] == 0.0
    assert terms((1, 1), host_params=0, effective_seed_params=9.0).rent[0] == 0.0
    assert terms((1, 1), effective_seed_params=1e12).rent[0] == -8.0


@pytest.mark.parametrize("settings", [RewardSettings(alpha_shock_coef=0.0), RewardSettings(disable_anti_gaming=True)])
def test_shock_can_be_switched_off(settings):
    assert terms((1, 1), alpha_delta_sq_sum=2.0).alpha_shock[0] == pytest.approx(-0.3916)
    assert terms((1, 1), settings, alpha_delta_sq_sum=2.0).alpha_shock[0] == 0.0


def test_contribution_weight_zero_leaves_the_ratio_penalty():
    values = {"present": True, "stage": Stage.BLENDING, "contribution": 10.0, "total_improvement": 0.05}
    found = terms((1, 1), RewardSettings(contribution_weight=0.0), **values)
    assert found.attribution[0] == pytest.approx(-0.3)


def test_terminal_only_at_the_last_step():
    values = {"val_acc": 80.0, "contributing": 2}
    assert shaped.terms(make_facts(step=24, **values), SETTINGS)["terminal"][0] == 0.0
    assert shaped.terms(make_facts(step=25, **values), SETTINGS)["terminal"][0] == pytest.approx(10.0)
    assert simplified.reward(make_facts(step=24, **values), SETTINGS)[0] == 0.0
    assert simplified.reward(make_facts(step=25, **values), SETTINGS)[0] == pytest.approx(2.4 + 4.0)


def test_simplified_charges_every_decision_but_wait():
    op = np.arange(len(Op))
    facts = make_facts((len(Op), 1), op=op, slot=np.where(op == Op.WAIT, -1, 0))
    np.testing.assert_allclose(simplified.reward(facts, SETTINGS), [0.0] + 5 * [-0.01])


def test_sparse_clamps_before_it_scales():
    settings = RewardSettings(sparse_reward_scale=2.0, param_budget=100.0)
    facts = make_facts((2, 1), 25, best_val_acc=[90.0, 90.0], total_params=[0, 10**9])
    np.testing.assert_allclose(sparse.reward(facts, settings), [1.8, -2.0])


def test_minimal_charges_early_prunes_at_any_step():
    ages, ops = [4, 5, 4, 4], [Op.PRUNE, Op.PRUNE, Op.ADVANCE, Op.PRUNE]
    present = np.array([[True], [True], [True], [False]])
    facts = make_facts((4, 1), 3, present=present, age=np.array(ages)[:, None], op=ops, slot=0)
    np.testing.assert_allclose(minimal.reward(facts, SETTINGS), [-0.1, 0.0, 0.0, 0.0])
