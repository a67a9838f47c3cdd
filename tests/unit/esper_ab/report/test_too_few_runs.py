from support.outcomes.csv_outcomes import outcomes
from support.outcomes.many_groups import MEANS, table

from esper_ab.readers.scales import scales_of
from esper_ab.report.external import external_report
from esper_ab.report.text import render_text
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore


def text_of(rows, **options):
    answer = explore(outcomes(rows), scales_of(("",), 2.0, **options), Rule())
    return " ".join(render_text(external_report(answer)).split())


def test_four_groups_with_too_few_runs_are_ranked_with_intervals():
    text = text_of(table(seeds=3))
    assert "No group has 6 seeds, so no difference between the 4 groups can be judged." in text
    assert "with intervals that hold for all 4 at once with 95 % confidence" in text
    assert "`esper-ab design --groups a,b,c --seeds 3..22 --margin 2`" in text


def test_the_text_mentions_that_all_intervals_overlap():
    overlap = "all of which overlap, so that the order may be luck"
    assert overlap in text_of(table(dict.fromkeys("abcd", 0.0), seeds=3))
    assert overlap not in text_of(table(MEANS | {"a": 500.0}, seeds=3))


def test_the_design_command_has_direction_unit_and_worst_outcome():
    text = text_of(table(seeds=3), better="lower", unit="ms", worst=90.0)
    assert "--margin 2 --better lower --unit ms --worst 90`" in text


def test_a_lost_run_is_mentioned_beside_the_interval():
    rows = table(seeds=3)
    rows[0] = rows[0] | {"outcome": ""}
    assert "; 1 lost)" in text_of(rows)


def test_three_groups_with_too_few_runs_get_no_intervals():
    text = text_of(table({"a": 0.0, "b": 1.0, "c": 2.0}, seeds=3))
    assert "Their means, best first, which may be luck: c " in text
    assert "run each with 6 fresh seeds or more." in text
