"""Every golden case, term by term, and the rent and shock inputs."""

import numpy as np
import pytest
from support.reward_facts import GOLDEN, golden_case

from workers.growth.rules.facts import alpha_delta_sq_sum, effective_seed_params
from workers.reward_terms import blank_absent, discount, ratio_penalty
from workers.rewards import shaped

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
SHAPED = GOLDEN["shaped"] + GOLDEN["shaped_edges"]


@pytest.mark.parametrize("case", SHAPED, ids=lambda case: case["id"])
def test_shaped_terms(case):
    facts, settings = golden_case(case, "shaped")
    terms = shaped.terms(facts, settings)
    components = case["expected"]["components"]
    for term, component in COMPONENT_OF_TERM.items():
        assert terms[term][0] == pytest.approx(components[component], abs=1e-9), term
    assert shaped.reward(facts, settings)[0] == pytest.approx(case["expected"]["reward"], abs=1e-9)


@pytest.mark.parametrize("case", SHAPED, ids=lambda case: case["id"])
def test_discount_and_ratio_penalty(case):
    facts, settings = golden_case(case, "shaped")
    seeds = blank_absent(facts.seeds)
    components = case["expected"]["components"]
    assert discount(seeds, settings)[0, 0] == pytest.approx(components["attribution_discount"], abs=1e-9)
    assert ratio_penalty(seeds, settings)[0, 0] == pytest.approx(components["ratio_penalty"], abs=1e-9)


def standing(slots):
    """active, alpha, params [1, S]; the parameter count falls back to the module's own, a gate adds to it."""
    active = np.array([[slot["active"] for slot in slots]])
    params = [(slot["seed_param_count"] or slot["seed_numel"]) + (slot["gate_numel"] or 0) for slot in slots]
    return active, np.array([[slot["alpha"] for slot in slots]]), np.array([params])


@pytest.mark.parametrize("case", GOLDEN["rent_and_shock_inputs"], ids=lambda case: case["id"])
def test_rent_and_shock_inputs(case):
    host_params = np.array([case["host_params"]])
    n_slots = len(case["steps"][0]["slots"])
    alpha_before, params_before = np.zeros((1, n_slots)), np.zeros((1, n_slots), dtype=np.int64)
    for step in case["steps"]:
        active, alpha, params = standing(list(step["slots"].values()))
        rent = effective_seed_params(active, alpha, params, host_params, case["base_slot_rent_ratio"])
        alpha, params = np.where(active, alpha, 0.0), np.where(active, params, 0)
        shock = alpha_delta_sq_sum(alpha, alpha_before, params_before, host_params)
        assert rent[0] == pytest.approx(step["effective_seed_params"], rel=1e-12, abs=1e-9)
        assert shock[0] == pytest.approx(step["alpha_delta_sq_sum"], abs=1e-9)
        alpha_before, params_before = alpha, params


def test_no_host_no_shock():
    ones, params = np.ones((1, 2)), np.ones((1, 2), dtype=np.int64)
    assert alpha_delta_sq_sum(ones, 0 * ones, params, np.array([0]))[0] == 0.0
