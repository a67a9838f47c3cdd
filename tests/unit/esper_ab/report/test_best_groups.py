import json

from support.outcomes.csv_outcomes import outcomes, scales
from support.outcomes.many_groups import MEANS, table

from esper_ab.report.external import external_json, external_report
from esper_ab.report.text import render_text
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore


def answer_to(means=MEANS):
    return explore(outcomes(table(means)), scales(), Rule())


def test_the_set_of_best_groups_is_printed_before_the_pairs():
    answer = answer_to()
    text = render_text(external_report(answer))
    begin_of_best = text.index("exploratory BEST OF 4: With 95 % confidence")
    assert begin_of_best < text.index("\nWhich group is the best\n") < text.index("\nPairs\n")
    assert text.count("INCONCLUSIVE: ") == 0, "the verdicts' sentences are with -v"
    assert "exploratory BETTER: a is better than c" in render_text(external_report(answer), in_full=True)
    assert max(map(len, text.splitlines())) <= 100


def test_the_first_screen_of_many_comparisons_counts_the_decided_pairs():
    text = " ".join(render_text(external_report(answer_to({f"g{n}": float(n // 6) * 9 for n in range(7)}))).split())
    assert "Of 21 pairs 6 are decided. All pairs: -v." in text


def test_a_report_on_three_groups_has_no_set_of_best_groups():
    answer = answer_to({"a": 0.0, "b": 1.0, "c": 2.0})
    assert "best" not in json.loads(external_json(answer))
    assert "BEST OF" not in render_text(external_report(answer))


def test_the_json_report_lists_the_groups_that_may_be_best():
    answer = answer_to()
    best_set = json.loads(external_json(answer))["best"]
    assert best_set["among"] == list(answer.best.among)
    assert best_set["headline"] == answer.best.headline
    assert set(best_set["groups"][0]) == {"group", "runs", "lost", "mean", "may_be_best", "behind"}
