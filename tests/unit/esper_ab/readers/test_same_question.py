"""Experiments of one question: which are one plan, which are refused, and what is said about them."""

from dataclasses import replace

import msgspec
import pytest
from support.journals.replications import ALIKE, experiment, source
from support.journals.synthetic import Shape

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.journal.fold import fold
from esper_ab.readers.same_question import on_other_seeds, same_question


def ask(*experiments):
    return same_question([source(one) for one in experiments])


def test_experiments_of_one_plan_differ_in_nothing_but_the_rng_seed():
    question = ask(experiment(1), experiment(2))
    assert question.one_plan
    assert question.differs == ()
    assert [contrast.groups for contrast in question.contrasts] == [("shaped", "simplified")]


def test_names_and_order_of_the_groups_do_not_matter():
    groups = experiment(1).groups
    renamed = {"plain": groups["simplified"], "new": groups["shaped"]}
    question = ask(experiment(1), experiment(2, groups=renamed))
    assert question.one_plan
    assert question.experiments[1].names == {"plain": "simplified", "new": "shaped"}
    assert len(question.contrasts) == 1


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"replicates": 8}, "seeds: 6 in seed1; 8 in seed2"),
        ({"settings": {"margin": 3.0}}, "margin: 2.0 in seed1; 3.0 in seed2"),
        ({"settings": {"alpha": 0.1}}, "alpha: 0.05 in seed1; 0.1 in seed2"),
        ({"eval_episodes": 16}, "eval_episodes: 8 in seed1; 16 in seed2"),
    ],
)
def test_another_plan_for_the_same_question_is_named(changes, line):
    question = ask(experiment(1), experiment(2, **changes))
    assert not question.one_plan
    assert line in question.differs


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"episodes": 9}, "episodes: 8 in seed1; 9 in seed2"),
        ({"outcome_over": "last-third"}, "outcome_over: evaluation in seed1; last-third in seed2"),
        ({"settings": {"task": "blobs"}}, "task: digits in seed1; blobs in seed2"),
        (
            {"groups": {"shaped": Shape(mode="sparse"), "simplified": Shape(mode="simplified")}},
            "reward.mode of shaped: shaped in seed1; sparse in seed2",
        ),
        (
            {"groups": {"shaped": Shape(), "wait": Shape(controller="wait")}},
            "groups: shaped, simplified in seed1; shaped, wait in seed2",
        ),
    ],
)
def test_a_different_question_is_refused_with_one_line_per_difference(changes, line):
    with pytest.raises(UsageError) as caught:
        ask(experiment(1), experiment(2, **changes))
    first_line, *lines = str(caught.value).split("\n  ")
    assert (
        first_line
        == "these experiments ask different questions, so nothing joins them; leave out those that differ in:"
    )
    assert lines == [line]


def test_another_unit_or_direction_of_the_outcome_is_a_different_question():
    plain = experiment(1)
    outcome = msgspec.structs.replace(plain.measures.outcome, better="lower", unit="s", difference_unit="")
    other = experiment(2, measures=msgspec.structs.replace(plain.measures, outcome=outcome))
    with pytest.raises(UsageError) as caught:
        ask(plain, other)
    assert str(caught.value).split("\n  ")[1:] == [
        "unit of the outcome: % in seed1; s in seed2",
        "direction: higher is better in seed1; lower is better in seed2",
    ]


def test_experiments_with_the_same_rng_seed_count_once():
    repeated = ("copy", source(experiment(1, replicates=8))[1])
    question = same_question([source(experiment(1)), repeated, source(experiment(2))])
    assert [item.name for item in question.experiments] == ["copy", "seed2"]  # the one with more runs
    assert question.repeated == ("seed1 repeats the runs of copy, with the same rng seed (1): counted once.",)


def test_another_version_is_named_but_does_not_separate_plans():
    first_event, *later_events = experiment(2).events()
    newer = msgspec.structs.replace(first_event, versions={"esper_ab": "0.1.0", "torch": "2.14"})
    question = same_question([source(experiment(1)), ("seed2", fold([newer, *later_events]))])
    assert question.one_plan
    assert question.differs == ("version of torch: 2.13 in seed1; 2.14 in seed2",)


def test_pooling_is_planned_if_one_plan_names_exactly_the_others():
    assert ask(experiment(1), experiment(2, earlier=(1,))).declared
    assert ask(experiment(1), experiment(2, earlier=(1,)), experiment(3, earlier=(1, 2))).declared
    assert not ask(experiment(1), experiment(2)).declared
    assert not ask(experiment(1), experiment(2, earlier=(1,)), experiment(3)).declared
    partial = ask(experiment(2, earlier=(1,)), experiment(3, earlier=(1, 2)))
    assert not partial.declared
    assert partial.missing == ("seed1",)


def test_a_replication_comes_after_the_experiment_that_it_replicates():
    question = ask(experiment(2, earlier=(1,)), experiment(1))
    assert [item.name for item in question.experiments] == ["seed1", "seed2"]
    question = ask(experiment(9, replicates=8), experiment(1))
    assert [item.name for item in question.experiments] == ["seed9", "seed1"]  # as given


def test_only_comparisons_of_all_plans_are_joined():
    groups = {**ALIKE, "sparse": Shape(mode="sparse")}
    with_control = experiment(2, groups=groups, settings={"control": "sparse"})
    question = ask(experiment(1, groups=groups), with_control)
    assert not question.one_plan
    assert [contrast.groups for contrast in question.contrasts] == [("shaped", "sparse"), ("simplified", "sparse")]


def test_one_rng_seed_forms_pairs_instead():
    assert not on_other_seeds([source(experiment(1)), source(replace(experiment(1), replicates=8))])
    assert on_other_seeds([source(experiment(1)), source(experiment(2))])


def test_a_trainer_whose_source_changed_is_not_pooled():
    def with_trainer(rng_seed, sha256):
        first_event, *later_events = experiment(rng_seed).events()
        facts = TrainerFacts(root="", files=("train.py",), sha256=sha256)
        plan = msgspec.structs.replace(first_event.plan, trainer=facts)
        return f"seed{rng_seed}", fold([msgspec.structs.replace(first_event, plan=plan), *later_events])

    assert same_question([with_trainer(1, "a"), with_trainer(2, "a")]).one_plan
    question = same_question([with_trainer(1, "a"), with_trainer(2, "b")])
    assert not question.one_plan
    assert "source of the trainer: a in seed1; b in seed2" in question.differs


def test_experiments_are_called_by_their_folders_if_these_differ():
    first, second = source(experiment(1))[1], source(experiment(2))[1]
    question = same_question([("/runs/old/demo", first), ("/runs/new/again/", second)])
    assert [item.name for item in question.experiments] == ["demo", "again"]
    question = same_question([("/runs/old/demo", first), ("/runs/new/demo", second)])
    assert [item.name for item in question.experiments] == ["/runs/old/demo", "/runs/new/demo"]
