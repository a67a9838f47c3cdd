"""The gates that scripts/gate_levels simulates decide as the package does."""

import gate_levels
import numpy as np
import pytest
from simulation import gates, laws
from simulation.gates import Plan, Verdict

from esper_ab.api.external import design_comparison, judge_outcomes

PLANNED = {15: "not-worse", 20: "not-worse", 30: "better", 46: "not-worse"}


def drawn(number):
    """Return a plan, and outcomes [head and base, pairs]."""
    rng = np.random.default_rng([4, number])
    pairs, claim = list(PLANNED.items())[number % len(PLANNED)]
    shape = gate_levels.LAWS[number % len(gate_levels.LAWS)]
    x = laws.runs(shape, laws.latent(rng, (1, 2, pairs), 0.5))[0] * rng.choice([0.5, 1.0, 3.0])
    x[0] += rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0])
    return Plan(gates.looks_of(pairs, claim), claim, adjusted=False), x


def verdict_by_package(plan, x):
    pairs = plan.looks[-1]
    claim = {"claim": "not-worse"} if plan.claim == "not-worse" else {}
    package_plan = design_comparison(
        ["head", "base"], pairs, margin=1.0, better="higher", control="base", looks=plan.looks, **claim
    )
    table = {
        "group": np.repeat(["head", "base"], pairs),
        "seed": np.tile(np.arange(pairs), 2),
        "order": np.tile(np.arange(pairs), 2),
        "outcome": x.ravel(),
    }
    (comparison,) = judge_outcomes(package_plan, table).comparisons
    return str(comparison.verdict).replace("BETTER, BELOW MARGIN", "BETTER").replace(", ", "_").replace(" ", "_")


@pytest.mark.parametrize("number", range(15))
def test_a_simulated_gate_and_the_package_agree_on_a_random_table(number):
    plan, x = drawn(number)
    answers = gates.judge(x[:1], x[1:], plan)
    assert Verdict(int(answers.verdicts[0])).name == verdict_by_package(plan, x)


def test_looks_are_those_of_printed_plans():
    assert gates.looks_of(15) == (15,)
    assert gates.looks_of(46) == (20, 24, 30, 38, 46)
    assert gates.looks_of(60) == (20, 24, 30, 38, 48, 60)
    assert gates.looks_of(106) == (20, 24, 30, 38, 48, 60, 76, 106)
    assert gates.looks_of(104, "better") == (14, 18, 22, 28, 36, 44, 56, 70, 88, 104)


@pytest.mark.parametrize("look", [20, 15])
def test_an_adjusted_estimate_is_that_of_least_squares(look):
    d = np.random.default_rng(1).standard_normal((1, 20)) + np.arange(20) % 2
    estimate, error, df = gates.moments(d, (look,), adjusted=True)
    design = np.stack([np.ones(look), 1 - 2 * (np.arange(look) % 2)], axis=1)
    (tau, _), (squares,), _, _ = np.linalg.lstsq(design, d[0, :look], rcond=None)
    assert estimate[0, 0] == pytest.approx(tau)
    assert error[0, 0] == pytest.approx(np.sqrt(squares / df[0] * np.linalg.inv(design.T @ design)[0, 0]))


def test_a_budget_that_ends_takes_no_further_look():
    x = np.full((1, 30), 5.0) + np.random.default_rng(1).standard_normal((1, 30))
    plan = Plan((20, 24, 30))
    for complete, verdict in ((19, Verdict.INCONCLUSIVE), (20, Verdict.BETTER)):
        answers = gates.judge(x, np.zeros((1, 30)), plan, np.array([complete]))
        assert answers.verdicts[0] == verdict
        assert answers.pairs[0] == complete


def test_equal_records_end_a_gate_after_six_pairs():
    x = np.random.default_rng(1).standard_normal((1, 20))
    answers = gates.judge(x, x, Plan((20,)))
    assert (answers.verdicts[0], answers.pairs[0]) == (Verdict.IDENTICAL, 6)
    assert answers.passed(Plan((20,)))[0]
    assert not answers.passed(Plan((20,), "better"))[0]
