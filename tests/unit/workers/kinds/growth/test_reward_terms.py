"""Terms of rewards: golden cases, and potentials over whole lives of seed modules."""

import math
from dataclasses import fields

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rewards.reward_facts import GOLDEN, NAN, golden_case, make_facts, random_facts
from support.worlds.growth_world import Episode, make_lifecycle, random_decisions

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.reward_terms import birth_bonus, blank_absent, discount, potential, ratio_penalty
from workers.kinds.growth.rewards import minimal, shaped, simplified, sparse
from workers.kinds.growth.rules.facts import FactsMemory, alpha_delta_sq_sum, effective_seed_params
from workers.kinds.growth.vocabulary import Op, Stage

SETTINGS = RewardSettings()
LOSS = RewardSettings(family="loss")
NO_PBRS = RewardSettings(disable_pbrs=True)
SEED = {"present": True, "stage": Stage.TRAINING}
BLENDING = {"present": True, "stage": Stage.BLENDING}
HOLDING = {"present": True, "stage": Stage.HOLDING}
EMPTY_BESIDE = {"present": [True, False], "stage": Stage.HOLDING, "age": 9, "contribution": -2.0}
WAITING = {**HOLDING, "contribution": 2.0, "total_improvement": 3.0, "epochs_in_stage": [1, 2, 3]}
SYNERGY = {**BLENDING, "epochs_in_stage": [1, 9], "total_improvement": -1.0, "interaction_sum": 2.0}
UNMEASURED = {**BLENDING, "contribution": 4.0, "total_improvement": NAN}
ENDED = {"val_acc": 80.0, "contributing": 2}
GROWN = {"total_params": 2000}
BESIDE = {**GROWN, "stage": Stage.TRAINING}
LOSS_NO_PBRS = RewardSettings(family="loss", disable_pbrs=True)
LATE = {"present": True, "stage": [Stage.HOLDING, Stage.GERMINATED], "previous_stage": [Stage.BLENDING, Stage.DORMANT]}


def case(term, expected, settings=SETTINGS, **facts):
    """A term of `shaped`, or the whole reward of a mode, of one environment with as many slots as its lists name."""
    return term, expected, settings, facts


CASES = {
    "attribution is summed over slots": case(
        "attribution", 0.5 * 4.0 - 3.0, **BLENDING, contribution=[4.0, -3.0], total_improvement=2.0
    ),
    "an unmeasured seed has a proxy": case("attribution", 0.3 * 2.0, **SEED, acc_delta=2.0),
    "two share it": case("attribution", 0.3 * 2.0, present=[True, True, False], stage=Stage.TRAINING, acc_delta=2.0),
    "three do": case("attribution", 0.3 * 2.0, present=[True] * 3, stage=Stage.TRAINING, acc_delta=2.0),
    "a fall is no proxy": case("attribution", 0.0, **SEED, acc_delta=-2.0),
    "nor is the first step": case("attribution", 0.0, **SEED, acc_delta=NAN),
    "a prune turns round the slot acted on alone": case(
        "attribution", 1.0 - 3.0, op=Op.PRUNE, slot=1, **HOLDING, contribution=[2.0, 6.0], total_improvement=3.0
    ),
    "a fossil counts nothing for the slot acted on alone": case(
        "attribution",
        0.5 * 2.0 / (1.0 + math.exp(3.0)),
        op=Op.FOSSILIZE,
        slot=1,
        **HOLDING,
        contribution=[2.0, 6.0],
        total_improvement=[-1.0, -1.0],
    ),
    "an unmeasured network is not discounted": case("attribution", 2.0, **UNMEASURED),
    "nor punished": case("blending_warning", 0.0, **UNMEASURED),
    "a weight of 0 leaves the ratio penalty": case(
        "attribution",
        -0.3,
        RewardSettings(contribution_weight=0.0),
        **BLENDING,
        contribution=10.0,
        total_improvement=0.05,
    ),
    "a harmful seed is pruned": case("action_shaping", 0.3 - 0.005, op=Op.PRUNE, slot=0, **EMPTY_BESIDE),
    "so is an empty slot": case("action_shaping", -0.2 - 0.005, op=Op.PRUNE, slot=1, **EMPTY_BESIDE),
    "the empty slot is planted": case("action_shaping", 0.2985 - 0.02, op=Op.GERMINATE, slot=1, **EMPTY_BESIDE),
    "a slot with a seed is": case("action_shaping", -0.3 - 0.02, op=Op.GERMINATE, slot=0, **EMPTY_BESIDE),
    "an advance costs nothing": case("action_shaping", 0.0, op=Op.ADVANCE, slot=0, **EMPTY_BESIDE),
    "nor does waiting": case("action_shaping", 0.0, **EMPTY_BESIDE),
    "a prune before the first validation is charged": case(
        "action_shaping", -0.3 - 0.005, op=Op.PRUNE, slot=0, present=True, stage=Stage.GERMINATED, age=0
    ),
    "one after it is not": case(
        "action_shaping", -0.005, op=Op.PRUNE, slot=0, present=True, stage=Stage.GERMINATED, age=1
    ),
    "no bonus of a birth without potentials": case("action_shaping", -0.02, NO_PBRS, op=Op.GERMINATE, slot=0),
    "waiting is warned of in every holding slot": case("holding_warning", -1.0 - 3.0, **WAITING),
    "but not while one acts": case("holding_warning", 0.0, **WAITING, op=Op.FOSSILIZE, slot=0),
    "blending is warned of in every slot": case("blending_warning", -0.15 - 0.40, **SYNERGY),
    "synergy is summed over slots": case("synergy", 0.2 * math.tanh(1.0), **SYNERGY),
    "rent is of parameters added": case("rent", -0.5 * math.log(3.0), total_params=3000, effective_seed_params=NAN),
    "but where effective ones are known": case("rent", 0.0, total_params=3000, effective_seed_params=0.0),
    "or there is no host": case("rent", 0.0, host_params=0, effective_seed_params=9.0),
    "it is capped": case("rent", -8.0, effective_seed_params=1e12),
    "a jump of alpha is a shock": case("alpha_shock", -0.3916, alpha_delta_sq_sum=2.0),
    "at no price": case("alpha_shock", 0.0, RewardSettings(alpha_shock_coef=0.0), alpha_delta_sq_sum=2.0),
    "switched off": case("alpha_shock", 0.0, RewardSettings(disable_anti_gaming=True), alpha_delta_sq_sum=2.0),
    "no potentials": case("pbrs", 0.0, NO_PBRS, **HOLDING, potential_before=9.0),
    "no potentials in simplified": case(simplified, 0.0, NO_PBRS, **HOLDING, potential_before=9.0),
    "nothing before the last step": case("terminal", 0.0, step=24, **ENDED),
    "at it": case("terminal", 10.0, step=25, **ENDED),
    "nothing in simplified before the last step": case(simplified, 0.0, step=24, **ENDED),
    "in simplified at it": case(simplified, 2.4 + 4.0, step=25, **ENDED),
    "in simplified waiting costs nothing": case(simplified, 0.0),
    **{f"{op.name} does": case(simplified, -0.01, op=op, slot=0) for op in Op if op != Op.WAIT},
    "an early prune costs in minimal": case(minimal, -0.1, op=Op.PRUNE, slot=0, present=True, age=4),
    "a later one does not": case(minimal, 0.0, op=Op.PRUNE, slot=0, present=True, age=5),
    "nor does an advance": case(minimal, 0.0, op=Op.ADVANCE, slot=0, present=True, age=4),
    "nor one of nothing": case(minimal, 0.0, op=Op.PRUNE, slot=0, present=False, age=4),
    "sparse scales": case(
        sparse, 1.8, RewardSettings(sparse_reward_scale=2.0), step=25, best_val_acc=90.0, total_params=0
    ),
    "but clamps before": case(
        sparse,
        -2.0,
        RewardSettings(sparse_reward_scale=2.0, param_budget=100.0),
        step=25,
        best_val_acc=90.0,
        total_params=10**9,
    ),
    "a loss that falls by half a standard deviation": case(shaped, 2.5, LOSS, loss_delta=0.05),
    "as much worse, at half price": case(shaped, -1.25, LOSS, loss_delta=-0.05),
    "clipped at 5 standard deviations": case(shaped, 25.0, LOSS, loss_delta=10.0),
    "the reference gives this to +inf, its first step": case(shaped, -12.5, LOSS, loss_delta=-math.inf),
    "our first step": case(shaped, 0.0, LOSS, loss_delta=NAN),
    "rent of twice the host": case(shaped, -0.05 * math.log(2.0), LOSS, **GROWN),
    "of half the host": case(shaped, 0.0, LOSS, total_params=500),
    "of no host": case(shaped, 0.0, LOSS, host_params=0),
    "capped": case(shaped, -0.01, RewardSettings(family="loss", max_rent_penalty=0.01), **GROWN),
    "grace of the only module": case(shaped, 0.0, LOSS_NO_PBRS, **BESIDE, present=[True, False], age=[2, 9]),
    "its end": case(shaped, -0.05 * math.log(2.0), LOSS_NO_PBRS, **BESIDE, present=[True, False], age=[3, 0]),
    "with the oldest one": case(shaped, -0.05 * math.log(2.0), LOSS_NO_PBRS, **BESIDE, present=True, age=[2, 9]),
    "none without modules": case(shaped, -0.05 * math.log(2.0), LOSS_NO_PBRS, **BESIDE, present=[False, False]),
    "a bonus of stages, summed over slots": case(shaped, 0.1 * (0.995 * 5.5 - 3.5) + 0.1 * 0.995, LOSS, **LATE),
    "switched off with potentials": case(shaped, 0.0, LOSS_NO_PBRS, **LATE),
    **{
        f"a last loss of {loss}": case(shaped, share, LOSS, step=25, val_loss=loss)
        for loss, share in ((2.3, 0.0), (1.3, 0.5), (0.1, 1.0), (9.0, 0.0))
    },
    "no span to reach": case(shaped, 1.0, RewardSettings(family="loss", target_loss=2.3), step=25, val_loss=9.0),
    "no terminal reward": case(
        shaped, 0.0, RewardSettings(family="loss", disable_terminal_reward=True), step=25, val_loss=0.1
    ),
}


@pytest.mark.parametrize(("term", "expected", "settings", "facts"), CASES.values(), ids=CASES)
def test_a_reward_term_has_its_expected_value(term, expected, settings, facts):
    slots = max((len(value) for value in facts.values() if isinstance(value, list)), default=1)
    step_facts = make_facts((1, slots), **facts)
    rewards = shaped.terms(step_facts, settings)[term] if isinstance(term, str) else term.reward(step_facts, settings)
    assert rewards[0] == pytest.approx(expected, abs=1e-12)


@given(st.floats(1e-6, 1e3))
def test_a_falling_loss_is_rewarded(change):
    reward_of_fall, reward_of_rise = (
        shaped.reward(make_facts(loss_delta=delta), LOSS)[0] for delta in (change, -change)
    )
    assert reward_of_fall > 0 > reward_of_rise


@pytest.mark.parametrize("family", ["contribution", "loss"])
def test_the_shaped_reward_refuses_another_gamma(family):
    with pytest.raises(ValueError, match=r"gamma = 0\.995, not 0\.99$"):
        shaped.reward(make_facts(), RewardSettings(gamma=0.99, family=family))


def test_blanking_absent_seed_modules_keeps_only_their_potential():
    facts = random_facts(np.random.default_rng(23), (40, 3))
    blanked_seeds = blank_absent(facts.seeds)
    empty_value = blank_absent(make_facts((40, 3)).seeds)
    for field in fields(blanked_seeds):
        blanked_value = getattr(blanked_seeds, field.name)
        original_value = getattr(facts.seeds, field.name)
        expected = original_value if field.name == "potential_before" else getattr(empty_value, field.name)
        np.testing.assert_array_equal(blanked_value, np.where(blanked_seeds.present, original_value, expected))


COMPONENT_OF_TERM = {
    "attribution": "bounded_attribution",
    "blending_warning": "blending_warning",
    "holding_warning": "holding_warning",
    "pbrs": "pbrs_bonus",
    "synergy": "synergy_bonus",
    "rent": "compute_rent",
    "alpha_shock": "alpha_shock",
    "action_shaping": "action_shaping",
    "terminal": "terminal_bonus",
}


@pytest.mark.parametrize("golden", GOLDEN["shaped"] + GOLDEN["shaped_edges"], ids=lambda golden: golden["id"])
def test_reward_terms_equal_those_of_the_golden_cases(golden):
    facts, settings = golden_case(golden, "shaped")
    expected = golden["expected"]
    seeds = blank_absent(facts.seeds)
    components = {COMPONENT_OF_TERM[term]: values[0] for term, values in shaped.terms(facts, settings).items()}
    components["attribution_discount"] = discount(seeds, settings)[0, 0]
    components["ratio_penalty"] = ratio_penalty(seeds, settings)[0, 0]
    assert components == pytest.approx({name: expected["components"][name] for name in components}, abs=1e-9)
    assert shaped.reward(facts, settings)[0] == pytest.approx(expected["reward"], abs=1e-9)


def active_alpha_params(slots):
    """active, alpha, params [1, S]; the parameter count falls back to the module's own, a gate adds to it."""
    params = [(slot["seed_param_count"] or slot["seed_numel"]) + (slot["gate_numel"] or 0) for slot in slots]
    return (np.array([row]) for row in ([slot["active"] for slot in slots], [slot["alpha"] for slot in slots], params))


@pytest.mark.parametrize("golden", GOLDEN["rent_and_shock_inputs"], ids=lambda golden: golden["id"])
def test_the_inputs_of_rent_and_shock_equal_the_golden_cases(golden):
    host_params = np.array([golden["host_params"]])
    alpha_before = np.zeros((1, 1))
    params_before = np.zeros((1, 1), dtype=np.int64)
    for step in golden["steps"]:
        active, alpha, params = active_alpha_params(list(step["slots"].values()))
        rent = effective_seed_params(active, alpha, params, host_params, golden["base_slot_rent_ratio"])
        alpha = np.where(active, alpha, 0.0)
        params = np.where(active, params, 0)
        shock = alpha_delta_sq_sum(alpha, alpha_before, params_before, host_params)
        assert rent[0] == pytest.approx(step["effective_seed_params"], rel=1e-12, abs=1e-9)
        assert shock[0] == pytest.approx(step["alpha_delta_sq_sum"], abs=1e-9)
        assert alpha_delta_sq_sum(alpha, alpha_before, params_before, np.array([0]))[0] == 0.0  # no host, no shock
        alpha_before = alpha
        params_before = params


NOT_TERMINAL = RewardSettings(disable_terminal_reward=True)


def lives(rng_seed, gates, steps):
    """Facts of every decision of an episode of random ones, in three slots."""
    rng = np.random.default_rng(rng_seed)
    history = []
    game = Episode(make_lifecycle(1, steps, gates), rng)
    memory = FactsMemory(1, 3, 1000, NOT_TERMINAL)
    for step in range(1, steps + 1):
        view = game.view(step)
        decision = random_decisions(view.masks, rng)
        history.append(memory.step_facts(game.lifecycle, view.signals, game.measurement, decision, step))
        game.act(decision, step)
    return history


def discounted(rewards):
    return sum(SETTINGS.gamma**t * reward for t, reward in enumerate(rewards))


@hypothesis.settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["permissive", "strict"]), st.integers(1, 30))
def test_rewards_from_potentials_telescope_over_an_episode(rng_seed, gates, steps):
    """To pbrs_weight * gamma^T * Phi of what stands at the last decision; seeds appear, advance, stay and vanish."""
    history = lives(rng_seed, gates, steps)
    final_potential = (
        SETTINGS.pbrs_weight * SETTINGS.gamma ** len(history) * potential(history[-1].seeds, SETTINGS).sum()
    )
    shaping = [simplified.reward(facts, NOT_TERMINAL)[0] + 0.01 * (facts.op[0] != Op.WAIT) for facts in history]
    assert discounted(shaping) == pytest.approx(final_potential, abs=1e-9)
    births = [birth_bonus(SETTINGS) * (facts.op[0] == Op.GERMINATE) for facts in history]
    shaping = [shaped.terms(facts, SETTINGS)["pbrs"][0] + birth for facts, birth in zip(history, births, strict=True)]
    unborn_potential = SETTINGS.gamma ** (len(history) - 1) * births[-1]  # germinated by the very last decision
    assert discounted(shaping) == pytest.approx(final_potential + unborn_potential, abs=1e-9)
