"""The rule over tasks in scripts/pooled_task_rates claims the same of random pairs as the package does."""

import numpy as np
import pooled_task_rates
import pytest
from support.outcomes.csv_outcomes import scales

from esper_ab.stats.pair import Pairs
from esper_ab.verdict.analysis_plan import Rule, make_plan
from esper_ab.verdict.looks import progress_after


def claims_of_package(differences, alpha):
    """The sign of each claim [comparisons] from differences [pairs, comparisons]."""
    pairs, comparisons = differences.shape
    tasks = scales(margin=1.0, tasks=[f"task{number}" for number in range(comparisons - 1)])
    plan = make_plan(("a", "b"), tuple(map(str, range(pairs))), tasks, Rule(alpha=alpha, looks=(pairs,)))
    order = np.arange(pairs)
    zeros = np.zeros(pairs)
    data = {
        contrast: Pairs(replicate=order, a=column, b=zeros, position_a=0 * order, position_b=0 * order + 1)
        for contrast, column in zip(plan.design.comparisons, differences.T, strict=True)
    }
    designs = {contrast: plan.design_of(contrast) for contrast in plan.design.comparisons}
    progress = progress_after(plan.design, data, pairs, designs)
    return [course.direction if course.decision == "crossed" else 0 for course in progress.values()]


@pytest.mark.parametrize(("pairs", "alpha"), [(10, 0.05), (21, 0.025), (40, 0.0125)])
@pytest.mark.parametrize("case", pooled_task_rates.CASES, ids=lambda case: case.words)
def test_the_script_and_the_package_claim_the_same(case, pairs, alpha):
    drawn = pooled_task_rates.draw(case, pairs, 20)[:, 0]
    by_script = pooled_task_rates.family(drawn, alpha)
    assert by_script.sign.tolist() == [claims_of_package(differences, alpha) for differences in drawn]


def test_a_claim_of_the_wrong_sign_or_of_more_than_the_margin_is_false():
    sign = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.0, 0.0]])
    beyond = np.array([[False, False], [True, False], [False, False], [True, False]])
    claims = pooled_task_rates.Claims(sign, beyond)
    assert claims.false(np.array([1.0, 0.5])).tolist() == [False, True, True, True]
    assert claims.false(np.array([2.0, -0.5])).tolist() == [False, False, False, False]
