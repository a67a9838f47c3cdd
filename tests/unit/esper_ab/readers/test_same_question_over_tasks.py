"""Experiments over the same tasks: which ask one question, which are one plan, and which are refused."""

import shutil

import pytest
from support.journals.over_tasks import parts_of, write_over_tasks
from support.journals.ready_journals import write
from support.journals.replications import APART, experiment
from support.journals.synthetic import Shape

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.same_question_over_tasks import read_over_tasks, same_question_over_tasks


def ask(folder, **experiments):
    folders = [write_over_tasks(folder / name, parts) for name, parts in experiments.items()]
    return same_question_over_tasks(read_over_tasks(folders))


def lines_of(folder, **experiments):
    with pytest.raises(UsageError) as caught:
        ask(folder, **experiments)
    return str(caught.value).split("\n  ")[1:]


def test_experiments_of_one_plan_differ_in_nothing_but_the_rng_seed(tmp_path):
    question = ask(tmp_path, first=parts_of(1), again=parts_of(2))
    assert question.one_plan
    assert question.differs == ()
    assert [contrast.task for contrast in question.contrasts] == ["mean over tasks", "digits", "mixture"]


def test_a_pooling_is_planned_if_one_plan_names_all_others(tmp_path):
    first = write_over_tasks(tmp_path / "first", parts_of(1))
    again = write_over_tasks(tmp_path / "again", parts_of(2), earlier=[first])
    third = write_over_tasks(tmp_path / "third", parts_of(3), earlier=[first, again])
    assert same_question_over_tasks(read_over_tasks([first, again])).declared
    whole_question = same_question_over_tasks(read_over_tasks([third, again, first]))
    assert whole_question.declared
    assert [item.name for item in whole_question.experiments] == ["first", "again", "third"]
    partial_question = same_question_over_tasks(read_over_tasks([first, third]))
    assert not partial_question.declared
    assert partial_question.missing == ("again",)


def test_experiments_that_no_plan_names_are_not_planned_together(tmp_path):
    assert not ask(tmp_path, first=parts_of(1), again=parts_of(2)).declared


def test_the_order_of_the_tasks_does_not_matter(tmp_path):
    question = ask(tmp_path, first=parts_of(1), again=dict(reversed(parts_of(2).items())))
    assert [item.rng_seed for item in question.experiments] == [1, 2]
    assert question.tasks["mixture"].one_plan


def test_another_setting_of_one_task_is_named_with_the_task(tmp_path):
    other = parts_of(2)
    other["mixture"] = parts_of(2, eval_episodes=16)["mixture"]
    question = ask(tmp_path, first=parts_of(1), again=other)
    assert not question.one_plan
    assert question.tasks["digits"].one_plan
    assert question.differs == ("mixture: eval_episodes: 8 in first; 16 in again",)


def test_a_setting_of_all_tasks_is_named_once(tmp_path):
    question = ask(tmp_path, first=parts_of(1), again=parts_of(2, replicates=8))
    assert "seeds: 6 in first; 8 in again" in question.differs


def test_experiments_over_other_tasks_are_refused_with_the_tasks_of_each(tmp_path):
    assert lines_of(tmp_path, first=parts_of(1), again=parts_of(2, tasks=("digits", "blobs"))) == [
        "tasks: digits, mixture in first; blobs, digits in again"
    ]


def test_another_question_on_one_task_is_refused_with_the_task(tmp_path):
    other = parts_of(2)
    other["mixture"] = parts_of(2, episodes=9)["mixture"]
    assert lines_of(tmp_path, first=parts_of(1), again=other) == ["mixture: episodes: 8 in first; 9 in again"]


def test_groups_that_change_their_settings_from_task_to_task_are_refused(tmp_path):
    swapped = {"shaped": Shape(mode="simplified"), "simplified": Shape(mode="shaped")}
    other = parts_of(2, {"digits": APART, "mixture": swapped})
    assert lines_of(tmp_path, first=parts_of(1, APART), again=other) == [
        "groups: those of again have the settings of other groups from task to task"
    ]


def test_the_same_rng_seed_twice_counts_once(tmp_path):
    question = ask(tmp_path, first=parts_of(1), copy=parts_of(1, replicates=8), again=parts_of(2))
    assert [item.name for item in question.experiments] == ["copy", "again"]
    assert question.repeated == ("first repeats the runs of copy, with the same rng seed (1): counted once.",)


def test_one_rng_seed_is_refused_with_the_parts_that_form_pairs(tmp_path):
    with pytest.raises(UsageError, match=r"one rng seed \(1\), so their seeds form pairs, task by task") as caught:
        ask(tmp_path, first=parts_of(1), copy=parts_of(1))
    assert f"`esper-ab compare {tmp_path / 'first' / 'digits'} {tmp_path / 'copy' / 'digits'}`" in str(caught.value)


def test_an_experiment_with_one_task_is_refused_beside_one_over_several(tmp_path):
    over_tasks = write_over_tasks(tmp_path / "first", parts_of(1))
    single = write(tmp_path / "single", experiment(2).events())
    with pytest.raises(UsageError, match=r"first is over several tasks and .*single is not; compare one task with it"):
        read_over_tasks([over_tasks, single])


def test_a_task_that_has_not_begun_is_named(tmp_path):
    first, again = (write_over_tasks(tmp_path / f"e{number}", parts_of(number)) for number in (1, 2))
    shutil.rmtree(again / "mixture")
    with pytest.raises(UsageError, match="e2: mixture has not begun, so nothing is compared yet"):
        read_over_tasks([first, again])


def test_what_is_no_experiment_is_refused_as_such(tmp_path):
    over_tasks = write_over_tasks(tmp_path / "first", parts_of(1))
    with pytest.raises(UsageError, match="no journal at"):
        read_over_tasks([over_tasks, tmp_path / "nowhere"])
