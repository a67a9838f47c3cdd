"""The rules that scripts/rates and scripts/unpaired_rates write anew decide as the package does."""

import msgspec
import numpy as np
import pytest
import rates
import rates_of_failures
import rates_of_plans
import rates_of_unpaired_counts
import rates_of_welch
import unpaired_rates
from page_tables import replace_tables
from simulation import laws
from simulation.procedure import Rule, drifts
from support.outcomes.compared_designs import pairs_of
from support.outcomes.look_designs import design

from esper_ab.api.external import design_comparison, judge_outcomes
from esper_ab.design.design import Boundary, Contrast, extended
from esper_ab.stats.boschloo import boschloo
from esper_ab.stats.drift import drift
from esper_ab.stats.welch import welch
from esper_ab.verdict.looks import progress_after


def test_an_extended_plan_claims_what_the_package_claims():
    rule = Rule((10,))
    (contrast,) = comparisons = (Contrast(a="a", b="b"),)
    boundary = Boundary(open=1, alpha=0.05, nominal_p=(0.05,))
    changes = {"comparisons": comparisons, "adjusted": False, "positions_matter": False, "looks": (10,), "margin": 1e-6}
    plan = extended(msgspec.structs.replace(design(), boundaries=(boundary,), **changes), 10)
    rng = np.random.default_rng(68)
    x = rng.standard_normal((60, 2, 40)) + rng.choice([0.0, 0.4, 0.8], (60, 1, 1)) * [[1.0], [0.0]]
    claims = rates_of_plans.extended(x[:, :1] - x[:, 1:], rule)[:, 0]
    directions = [progress_after(plan, {contrast: pairs_of(a, b)}, 40)[contrast].direction for a, b in x]
    assert directions == claims.tolist()
    assert {*directions} >= {0, 1}
    at_the_plans_end = rates_of_plans.follow((x[:, :1] - x[:, 1:])[..., :10], rule, 1.0).crossed[:, 0]
    assert (at_the_plans_end != claims).any()


@pytest.mark.parametrize("tasks", [2, 3])
def test_the_comparisons_of_several_tasks_and_their_mean_are_those_of_the_package(tasks):
    names = [f"task{number}" for number in range(tasks)]
    plan = design_comparison(["a", "b"], 10, margin=1.0, better="higher", tasks=names)
    rng = np.random.default_rng([68, tasks])
    verdicts = set()
    for _ in range(12):
        x = rng.standard_normal((2, tasks, 10)) + rng.choice([-2.0, 0.0, 1.5], (1, tasks, 1)) * [[[1.0]], [[0.0]]]
        table = {
            "group": np.repeat(["a", "b"], tasks * 10),
            "task": np.tile(np.repeat(names, 10), 2),
            "seed": np.tile(np.arange(10), 2 * tasks),
            "outcome": x.ravel(),
        }
        answer = judge_outcomes(plan, table)
        state = rates_of_plans.follow(rates_of_plans.with_mean((x[0] - x[1])[None]), Rule((10,)), 1.0)
        words = [{1: "BETTER", -1: "WORSE", 0: "INCONCLUSIVE"}[int(sign)] for sign in state.crossed[0]]
        assert [str(comparison.verdict) for comparison in answer.comparisons] == words
        verdicts |= {*words}
    assert verdicts == {"BETTER", "WORSE", "INCONCLUSIVE"}


def test_series_drift_where_the_package_finds_a_drift():
    d = rates_of_failures.autoregressive(np.random.default_rng(68), (200, 14), 0.6)
    found = [drift(pairs_of(row, 0.0 * row), 1) for row in d]
    by_package = [min(one.slope_p, one.autocorrelation_p) <= 0.005 for one in found]
    assert drifts(d).tolist() == by_package
    assert 10 < sum(by_package) < 190


@pytest.mark.parametrize("law", ["normal", "lognormal", "15 % of runs collapse"])
def test_the_t_of_unequal_numbers_is_that_of_the_package(law):
    rng = np.random.default_rng(68)
    a, b = (laws.runs(law, rng.standard_normal((40, runs))) for runs in (6, 15))
    t, df = rates_of_welch.t_and_df(a, b)
    by_package = [welch(*runs) for runs in zip(a, b, strict=True)]
    assert t["least 2/3"] == pytest.approx([result.t for result in by_package])
    assert df == pytest.approx([result.df for result in by_package])
    assert (t["least 2/3"] != t["never"]).any()


@pytest.mark.parametrize(("n", "m"), [(6, 9), (8, 8)])
def test_boschloos_p_is_that_of_the_package(n, m):
    p = rates_of_unpaired_counts.unconditional(rates_of_unpaired_counts.fisher(n, m))
    by_package = [[boschloo(x, n, y, m) for y in range(m + 1)] for x in range(n + 1)]
    assert p == pytest.approx(np.array(by_package), rel=0.01)


EXACT = ("runs needed", "unpaired counts", "called small", "zero or one", "two values", "two values, more pairs")
SECTIONS = [
    pytest.param(script, name, marks=pytest.mark.slow if name in ("one shape", "runs needed") else (), id=name)
    for script in (rates, unpaired_rates)
    for name in script.TABLES
]


@pytest.mark.parametrize(("script", "name"), SECTIONS)
def test_the_page_has_the_rows_that_the_script_writes(script, name, monkeypatch, tmp_path):
    for module in (rates_of_plans, rates_of_failures, rates_of_welch):
        monkeypatch.setattr(module, "EXPERIMENTS", 100)
    monkeypatch.setattr(rates_of_plans, "PATHS", 20_000)
    copy = tmp_path / "rates.md"
    copy.write_text(script.PAGE.read_text())
    replace_tables(copy, {name: script.TABLES[name]})
    lines, page_lines = copy.read_text().splitlines(), script.PAGE.read_text().splitlines()
    assert len(lines) == len(page_lines)
    rows = [(line, page_line) for line, page_line in zip(lines, page_lines, strict=True) if line != page_line]
    assert all(line.split("|")[1] == page_line.split("|")[1] for line, page_line in rows)
    assert [line.count("|") for line in lines] == [line.count("|") for line in page_lines]
    assert (rows == []) == (name in EXACT)
