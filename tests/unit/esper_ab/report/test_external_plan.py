from support.outcomes.csv_outcomes import scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.report.external_plan import render_plan
from esper_ab.verdict.analysis_plan import Rule

PLAN = make_external_plan(("new", "old"), tuple(map(str, range(10))), scales(), Rule())


def test_the_text_of_a_plan_has_its_digest_and_the_judge_command():
    text = render_plan(PLAN, "my plan.json")
    assert "esper-ab judge 'my plan.json' RESULTS.csv" in text
    assert PLAN.digest in text.replace("\n", " ")


def test_lines_of_an_external_plan_fit_100_columns():
    assert max(map(len, render_plan(PLAN, "plan.json").splitlines())) <= 100
