"""The joint report: sentences, pooled verdicts, the table of all experiments, and each verdict by its own plan."""

import msgspec
from support.journals.replications import ALIKE, APART, SWAPPED, experiment, source, stopped_early

from esper_ab.journal.fold import fold
from esper_ab.readers.same_question import same_question
from esper_ab.report.confirmation import confirmations
from esper_ab.report.page import render_page
from esper_ab.report.replications import replications_json, replications_report
from esper_ab.report.text import render_text
from esper_ab.report.together import together


def answer_of(*experiments):
    return together(same_question([source(one) for one in experiments]))


def text_of(answer):
    return " ".join(render_text(replications_report(answer), in_full=True).split())


def test_the_sentence_about_all_comes_first_and_each_verdict_stands_beside_the_others():
    answer = answer_of(experiment(1, groups=APART), experiment(2, groups=APART, earlier=(1,)))
    text = text_of(answer)
    (sentence,) = confirmations(answer)
    assert text.index(sentence) < text.index("2 experiments together, 12 pairs BETTER: ")
    for name, content in answer.experiments:
        (comparison,) = content.comparisons
        start = text.index(f"{name} (rng seed {content.experiment.rng_seed}, 6 seeds), by its own plan")
        assert text.index(f"{comparison.verdict}: {comparison.headline}", start) > start
        assert all(f"! {warning}" in text for warning in comparison.warnings)


def test_a_planned_pooling_is_not_exploratory_and_an_unplanned_one_is():
    planned = text_of(answer_of(experiment(1), experiment(2, earlier=(1,))))
    unplanned = text_of(answer_of(experiment(1), experiment(2)))
    assert "xploratory" not in planned
    assert "EXPLORATORY: no plan says that exactly these experiments are pooled" in unplanned
    assert "exploratory BETTER: shaped is better" in unplanned


def test_what_the_looks_cost_is_said():
    whole = experiment(1, replicates=20, groups=APART)
    stopped = fold(stopped_early(experiment(2, replicates=20, groups=APART, earlier=(1,)), 14))
    text = text_of(together(same_question([source(whole), ("seed2", stopped)])))
    assert "2 experiments get 0.025 of alpha 0.05: each further experiment halves it" in text
    assert "The standard error counts the 6 pairs that early stops saved" in text


def test_experiments_that_disagree_are_named():
    text = text_of(answer_of(experiment(1, groups=APART), experiment(2, groups=SWAPPED)))
    assert "The experiments differ by more than their seeds explain (+4.25 points, " in text


def test_two_plans_stand_side_by_side_without_a_mean():
    text = text_of(answer_of(experiment(1), experiment(2, replicates=8)))
    assert "Their plans differ, so they are set side by side; a mean over experiments takes 3." in text
    assert "! seeds: 6 in seed1; 8 in seed2" in text
    assert "random-effects mean" not in text


def test_three_plans_have_a_mean_with_its_heterogeneity():
    answer = answer_of(experiment(1), experiment(2, replicates=8), experiment(3, replicates=10, groups=ALIKE))
    text = text_of(answer)
    assert "random-effects mean" in text
    assert "interval of Knapp and Hartung, with tau by Paule and Mandel; it decides nothing." in text
    (item,) = answer.contrasts
    assert f"Q {item.mean.q:.2f} on 2 degrees of freedom" in text


def test_a_blocked_experiment_is_not_in_the_mean():
    first_event, *later_events = experiment(3, replicates=9).events()
    foreign_plan = msgspec.structs.replace(first_event.plan, digest="1" * 64)
    blocked = fold([msgspec.structs.replace(first_event, plan=foreign_plan), *later_events])
    sources = [source(experiment(1)), source(experiment(2, replicates=8)), ("blocked", blocked)]
    (item,) = together(same_question(sources)).contrasts
    assert item.mean is None


def test_the_json_has_everything_that_the_text_has():
    answer = answer_of(experiment(1), experiment(2, earlier=(1,)))
    document = msgspec.json.decode(replications_json(answer))
    assert document["sentences"] == list(confirmations(answer))
    assert document["planned"] is True
    (item,) = document["together"]
    assert item["pooled"]["comparison"]["verdict"] == "BETTER"
    assert item["pooled"]["experiments"] == 2
    assert item["random_effects"] is None
    assert [effect["experiment"] for effect in item["effects"]] == ["seed1", "seed2"]
    assert [replication["rng_seed"] for replication in document["replications"]] == [1, 2]


def test_the_page_has_the_forest_plot():
    page = render_page(replications_report(answer_of(experiment(1), experiment(2))))
    assert "Effect in every experiment, and over all of them" in page
    assert "<svg" in page
