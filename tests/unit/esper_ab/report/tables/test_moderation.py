"""The rows of a comparison's table that name a shared variance."""

from support.outcomes.csv_outcomes import outcomes, scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.report.tables import moderation
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.judge import judge

VALUES = {"a": [1.0, 3.0, 2.0, 5.0, 4.0, 6.0], "b": [2.0, 2.5, 3.0, 3.5, 2.0, 2.5], "c": [0.0, 9.0, 1.0, 8.0, 2.0, 7.0]}


def comparison(variances):
    plan = make_external_plan(tuple(VALUES), [str(seed) for seed in range(6)], scales(), Rule(variances=variances))
    table = [
        {"group": group, "seed": seed, "outcome": value}
        for group, values in VALUES.items()
        for seed, value in enumerate(values)
    ]
    return judge(plan, outcomes(table)).comparisons[0]


def test_a_moderated_comparison_names_the_shared_sd_and_as_what_it_counts():
    result = comparison("moderated")
    assert moderation.test_name(result) == "moderated t, paired"
    ((label, text),) = moderation.shared_sd(result)
    assert label == "SD shared by the comparisons"
    assert text.endswith(", which counts as 2 degrees of freedom")


def test_a_comparison_with_its_own_variance_names_none():
    result = comparison("own")
    assert moderation.test_name(result) == "t, paired"
    assert list(moderation.shared_sd(result)) == []
