"""The joint report: sentences, pooled verdicts, the table of all experiments, and each verdict by its own plan."""

import msgspec
from support.journals.over_tasks import parts_of, write_over_tasks
from support.journals.replications import ALIKE, APART, SWAPPED, experiment, source, stopped_early

from esper_ab.journal.fold import fold
from esper_ab.readers.same_question import same_question
from esper_ab.readers.same_question_over_tasks import read_over_tasks, same_question_over_tasks
from esper_ab.report.confirmation import confirmations
from esper_ab.report.page import render_page
from esper_ab.report.replications import replications_json, replications_report
from esper_ab.report.text import render_text
from esper_ab.report.together import together, together_over_tasks


def answer_of(*experiments):
    return together(same_question([source(one) for one in experiments]))


def text_of(answer):
    return " ".join(render_text(replications_report(answer), in_full=True).split())


def test_the_sentence_about_all_comes_first_and_each_verdict_stands_beside_the_others():
    answer = answer_of(experiment(1, groups=APART), experiment(2, groups=APART, earlier=(1,)))
    text = text_of(answer)
    (sentence,) = confirmations(answer)
    assert text.index(sentence) < text.index("2 experiments together, 12 pairs BETTER: ")
    for item in answer.experiments:
        (comparison,) = item.comparisons
        start = text.index(f"{item.name} (rng seed {item.rng_seed}, 6 seeds), by its own plan")
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


def over_tasks(folder, **experiments):
    """The answer of experiments over several tasks, by the names of their directories."""
    folders = [write_over_tasks(folder / name, parts) for name, parts in experiments.items()]
    return together_over_tasks(same_question_over_tasks(read_over_tasks(folders)))


def test_experiments_over_tasks_are_answered_on_the_mean_and_then_on_each_task(tmp_path):
    answer = over_tasks(tmp_path, first=parts_of(1, APART), again=parts_of(2, APART))
    start = "Confirmed: first and again each show that shaped is better than simplified; "
    assert [sentence.partition(start)[::2] for sentence in confirmations(answer)] == [
        (
            "Mean over tasks: ",
            "pooled without a plan, so exploratory (12 pairs): shaped - simplified = +2.56 margins, 99.2 % interval "
            "+2.15 to +2.96.",
        ),
        (
            "digits: ",
            "pooled without a plan, so exploratory (12 pairs): shaped - simplified = +4.61 points, 99.2 % interval "
            "+2.71 to +6.52.",
        ),
        (
            "mixture: ",
            "pooled without a plan, so exploratory (12 pairs): shaped - simplified = +5.62 points, 99.2 % interval "
            "+4.00 to +7.24.",
        ),
    ]
    text = text_of(answer)
    assert "mean over the named tasks, in units of each task's margin: 2 experiments together, 12 pairs" in text
    assert (
        "2 experiments get 0.025 of alpha 0.05, which the 3 comparisons on tasks and on their mean share, as in each "
        "launch: each further experiment halves it" in text
    )
    for item in answer.experiments:
        for comparison in item.comparisons:
            assert f"{comparison.verdict}: {comparison.headline}" in text


def test_a_task_of_one_plan_is_pooled_alone_if_other_tasks_have_several(tmp_path):
    other = parts_of(2, APART)
    other["mixture"] = parts_of(2, APART, settings={"margin": 3.0})["mixture"]
    answer = over_tasks(tmp_path, first=parts_of(1, APART), again=other)
    assert {item.contrast.task: item.pooled is not None for item in answer.contrasts} == {
        "mean over tasks": False,
        "digits": True,
        "mixture": False,
    }
    (digits,) = (item.pooled for item in answer.contrasts if item.pooled)
    assert digits.comparison.last_look.bound_p == 0.05 / 3 / 2  # half of the task's share
    text = text_of(answer)
    assert "Their plans are the same on digits, so there they are pooled, each task by itself; elsewhere," in text
    assert "2 experiments get 0.00833 of the part of alpha that a task has by itself" in text
    assert "! mixture: margin: 2.0 in first; 3.0 in again" in text
    assert "their plans differ, so they are not pooled" in confirmations(answer)[0]


def test_three_experiments_over_tasks_with_different_plans_have_a_mean_on_every_task(tmp_path):
    parts = {f"e{number}": parts_of(number, APART, replicates=number + 5) for number in (1, 2, 3)}
    answer = over_tasks(tmp_path, **parts)
    assert all(item.mean.experiments == 3 for item in answer.contrasts)


def test_an_experiment_over_tasks_that_has_not_ended_is_not_pooled(tmp_path):
    folders = [write_over_tasks(tmp_path / f"e{number}", parts_of(number)) for number in (1, 2)]
    journal = folders[1] / "mixture" / "events.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))  # without its end
    answer = together_over_tasks(same_question_over_tasks(read_over_tasks(folders)))
    assert answer.unfinished == ("e2",)
    assert not answer.pooled
    assert confirmations(answer) == ()
    text = text_of(answer)
    assert "e2 has not ended, so nothing is said about all of them together." in text
    assert "Their plan is the same; they are pooled when all have ended." in text


def test_the_json_over_tasks_names_the_task_of_every_comparison(tmp_path):
    answer = over_tasks(tmp_path, first=parts_of(1), again=parts_of(2))
    document = msgspec.json.decode(replications_json(answer))
    assert [item["task"] for item in document["together"]] == ["mean over tasks", "digits", "mixture"]
    own_tasks = [comparison["task"] for comparison in document["replications"][1]["comparisons"]]
    assert own_tasks == ["digits", "mixture", "mean over tasks"]
    assert document["planned"] is False


def test_the_page_over_tasks_has_a_panel_per_task(tmp_path):
    answer = over_tasks(tmp_path, first=parts_of(1), again=parts_of(2))
    page = render_page(replications_report(answer))
    assert "mean over tasks: shaped minus simplified: first +" in page
    assert "mixture: shaped minus simplified: first +" in page
