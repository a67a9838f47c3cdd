"""Experiments over the same tasks are pooled as one launch over these tasks with all of their seeds."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.journals.over_tasks import TASKS, parts_of, write_over_tasks
from support.journals.ready_journals import with_lost_runs, write
from support.journals.replications import ALIKE, APART
from support.journals.synthetic import Shape

from esper_ab.analysis.pooling import pool
from esper_ab.analysis.pooling_over_tasks import pool_over_tasks
from esper_ab.readers.same_question_over_tasks import read_over_tasks, same_question_over_tasks
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import Verdict


def question_of(folder, *experiments):
    """The question of these experiments, each with the rng seed of its place."""
    folders = [write_over_tasks(folder / f"e{number}", parts) for number, parts in enumerate(experiments)]
    return same_question_over_tasks(read_over_tasks(folders))


def pooled(folder, *experiments):
    """The pooled comparisons by task."""
    return by_task(pool_over_tasks(question_of(folder, *experiments).experiments))


def by_task(answers):
    return {answer.comparison.question.task: answer for answer in answers}


def test_the_mean_is_the_paired_t_over_the_means_of_all_seeds_in_margins_at_half_of_alpha(tmp_path):
    question = question_of(tmp_path, parts_of(1, ALIKE), parts_of(2, ALIKE))
    answers = by_task(pool_over_tasks(question.experiments))
    assert list(answers) == [*TASKS, MEAN]
    differences = np.mean([answers[task].comparison.pairs.differences / 2.0 for task in TASKS], axis=0)
    comparison = answers[MEAN].comparison
    assert comparison.estimate == pytest.approx(differences.mean())
    assert comparison.last_look.bound_p == pytest.approx(0.025 / 3)
    half_width = stats.t.isf(0.025 / 6, 11) * stats.sem(differences)
    assert (comparison.low, comparison.high) == pytest.approx(
        (differences.mean() - half_width, differences.mean() + half_width)
    )
    assert answers[MEAN].means == pytest.approx((differences[:6].mean(), differences[6:].mean()))


def test_a_third_experiment_halves_the_share_of_alpha(tmp_path):
    answers = pooled(tmp_path, *(parts_of(rng_seed, ALIKE) for rng_seed in (1, 2, 3)))
    assert {answer.comparison.last_look.bound_p for answer in answers.values()} == {0.0125 / 3}
    assert {answer.experiments for answer in answers.values()} == {3}


def test_a_task_that_is_decided_as_larger_than_the_margin_hands_its_share_to_the_others(tmp_path):
    far = {"shaped": Shape(accuracy=80.0), "simplified": Shape(accuracy=60.0, mode="simplified")}
    groups = {"digits": far, "mixture": ALIKE}
    answers = pooled(tmp_path, parts_of(1, groups), parts_of(2, groups))
    assert answers["digits"].comparison.verdict is Verdict.BETTER
    assert answers["mixture"].comparison.last_look.bound_p > 0.025 / 3


def test_the_order_of_the_experiments_changes_nothing(tmp_path):
    first, second = parts_of(1, APART), parts_of(2, APART)
    one, other = pooled(tmp_path / "a", first, second), pooled(tmp_path / "b", second, first)
    assert [answer.comparison.estimate for answer in one.values()] == [
        answer.comparison.estimate for answer in other.values()
    ]


def test_groups_with_other_names_are_pooled_under_those_of_the_first_experiment(tmp_path):
    first = parts_of(1, APART)
    renamed = {"plain": APART["simplified"], "new": APART["shaped"]}
    answers = pooled(tmp_path, first, parts_of(2, renamed))
    comparison = answers[MEAN].comparison
    assert (comparison.question.a, comparison.question.b) == ("shaped", "simplified")
    assert comparison.verdict is Verdict.BETTER
    assert len(comparison.pairs) == 12


def test_a_blocked_task_of_one_experiment_blocks_the_pooled_task_and_the_mean(tmp_path):
    parts = parts_of(2, APART)
    first_event, *later_events = parts["digits"].events()
    foreign_plan = msgspec.structs.replace(first_event.plan, digest="1" * 64)
    question_of(tmp_path, parts_of(1, APART), parts)
    blocked = [msgspec.structs.replace(first_event, plan=foreign_plan), *later_events]
    (tmp_path / "e1" / "digits" / "events.jsonl").unlink()
    write(tmp_path / "e1" / "digits", blocked)
    question = same_question_over_tasks(read_over_tasks([tmp_path / "e0", tmp_path / "e1"]))
    verdicts = {
        task: answer.comparison.verdict for task, answer in by_task(pool_over_tasks(question.experiments)).items()
    }
    assert verdicts["digits"] is verdicts[MEAN] is Verdict.BLOCKED
    assert verdicts["mixture"] is Verdict.BETTER


def test_a_seed_that_was_lost_on_one_task_is_lost_to_this_task_and_the_mean(tmp_path):
    parts = parts_of(2, APART)
    question_of(tmp_path, parts_of(1, APART), parts)
    (tmp_path / "e1" / "digits" / "events.jsonl").unlink()
    lost_runs = {f"{name}/5": "dropped_pair" for name in APART}
    write(tmp_path / "e1" / "digits", with_lost_runs(parts["digits"].events(), lost_runs))
    question = same_question_over_tasks(read_over_tasks([tmp_path / "e0", tmp_path / "e1"]))
    answers = by_task(pool_over_tasks(question.experiments))
    assert {task: len(answer.comparison.pairs) for task, answer in answers.items()} == {
        "digits": 11,
        "mixture": 12,
        MEAN: 11,
    }
    assert answers["digits"].comparison.lost.a == 1


def test_runs_by_which_one_task_was_extended_are_not_used(tmp_path):
    extended = parts_of(2, APART)
    extended["digits"] = replace(extended["digits"], extended_by=2)
    answers = pooled(tmp_path, parts_of(1, APART), extended)
    assert {len(answer.comparison.pairs) for answer in answers.values()} == {12}


def test_the_claim_not_worse_is_pooled_at_its_one_sided_bound(tmp_path):
    changes = {"settings": {"claim": "not-worse", "control": "simplified"}, "replicates": 15}
    answers = pooled(tmp_path, parts_of(1, ALIKE, **changes), parts_of(2, ALIKE, **changes))
    comparison = answers[MEAN].comparison
    assert comparison.design.non_inferiority.nominal_p == pytest.approx((0.025 / 3,))
    assert comparison.last_look.non_inferiority is not None


effects = st.lists(st.floats(-6.0, 6.0), min_size=2, max_size=2)


@settings(max_examples=6, deadline=None)
@given(effects=effects, rng_seed=st.integers(0, 2**20))
def test_a_task_that_is_pooled_alone_needs_at_least_as_small_a_p(tmp_path_factory, effects, rng_seed):
    """So error rates hold whether the plans of the other tasks are the same as well. The statistics may differ: a task
    alone is adjusted for device and order, and tasks together are not.
    """
    groups = {
        task: {**ALIKE, "shaped": Shape(accuracy=70.0 + effect)} for task, effect in zip(TASKS, effects, strict=True)
    }
    experiments = [parts_of(seed, groups) for seed in (rng_seed, rng_seed + 1)]
    question = question_of(tmp_path_factory.mktemp("experiments"), *experiments)
    together = by_task(pool_over_tasks(question.experiments))
    for task, own_question in question.tasks.items():
        (alone,) = pool(own_question.experiments, own_question.contrasts)
        assert 0.0 < alone.comparison.last_look.bound_p <= together[task].comparison.last_look.bound_p
