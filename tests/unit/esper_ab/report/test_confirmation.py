"""One sentence on an experiment and its replications, for every way in which they can end."""

import pytest
from support.journals.replications import ALIKE, APART, SWAPPED, experiment, source
from support.journals.synthetic import Shape

from esper_ab.journal.fold import fold
from esper_ab.readers.same_question import same_question
from esper_ab.report.confirmation import confirmations
from esper_ab.report.together import together


def sentence(*experiments):
    (only,) = confirmations(together(same_question([source(one) for one in experiments])))
    return only


def test_a_replication_that_shows_the_same_confirms():
    text = sentence(experiment(1, groups=APART), experiment(2, groups=APART, earlier=(1,)))
    assert text == (
        "Confirmed: seed1 and seed2 each show that shaped is better than simplified; pooled as planned (12 pairs): "
        "shaped - simplified = +4.24 points, 97.5 % interval +2.50 to +5.97."
    )


@pytest.mark.parametrize(
    ("first", "second", "start"),
    [
        (APART, SWAPPED, "Contradicted: seed1 shows that shaped is better than simplified, seed2 shows the opposite;"),
        (
            APART,
            ALIKE,
            "Not confirmed by seed2 alone: seed1 shows that shaped is better than simplified, but both together do "
            "not;",
        ),
        (
            ALIKE,
            APART,
            "seed1 decides nothing about shaped and simplified, seed2 shows that shaped is better than simplified; "
            "together",
        ),
        (
            ALIKE,
            ALIKE,
            "Neither seed1 nor seed2 alone decides about shaped and simplified, and neither do they together;",
        ),
    ],
)
def test_each_ending_is_named(first, second, start):
    assert sentence(experiment(1, groups=first), experiment(2, groups=second)).startswith(start)


def test_an_unplanned_pooling_says_that_it_is_exploratory():
    text = sentence(experiment(1), experiment(2))
    assert "; pooled without a plan, so exploratory (12 pairs): " in text


def test_experiments_that_decide_only_together_say_so():
    start = "Neither seed5 nor seed6 alone decides about shaped and simplified; together they "
    groups = {**ALIKE, "shaped": Shape(accuracy=72.0)}
    unplanned = sentence(experiment(5, groups=groups), experiment(6, groups=groups))
    assert unplanned.startswith(f"{start}suggest that shaped is better than simplified;")
    planned = sentence(experiment(5, groups=groups), experiment(6, groups=groups, earlier=(5,)))
    assert planned.startswith(f"{start}show that shaped is better than simplified;")


def test_a_third_experiment_that_disagrees_is_named_beside_those_that_agree():
    text = sentence(experiment(1), experiment(3), experiment(2, groups=ALIKE))
    assert text.startswith("Confirmed by seed3, not by seed2 alone: seed1 shows that shaped is better than simplified")


def test_different_plans_are_not_pooled():
    text = sentence(experiment(1), experiment(2, replicates=8))
    assert text == (
        "Confirmed: seed1 and seed2 each show that shaped is better than simplified; their plans differ, so they are "
        "not pooled."
    )


def test_three_different_plans_have_a_mean():
    text = sentence(experiment(1), experiment(2, replicates=8), experiment(3, replicates=10))
    assert "mean over 3 experiments of different plans: shaped - simplified = +" in text
    assert "95 % interval" in text


def test_nothing_is_said_before_all_have_ended():
    *events, _ = experiment(2).events()
    answer = together(same_question([source(experiment(1)), ("seed2", fold(events))]))
    assert answer.unfinished == ("seed2",)
    assert confirmations(answer) == ()


def test_groups_in_the_other_order_are_seen_from_the_first_experiment():
    reversed_groups = dict(reversed(APART.items()))
    text = sentence(experiment(1, groups=APART), experiment(2, groups=reversed_groups))
    assert text.startswith("Confirmed: seed1 and seed2 each show that shaped is better than simplified;")


def test_a_better_group_confirms_that_it_is_not_worse():
    settings = {"claim": "not-worse", "control": "simplified"}
    not_worse = {"shaped": Shape(accuracy=70.3), "simplified": Shape(accuracy=70.0, mode="simplified", params=500)}
    first = experiment(2, groups=not_worse, replicates=20, settings=settings)
    text = sentence(first, experiment(3, groups=APART, replicates=20, settings=settings, earlier=(2,)))
    assert text.startswith(
        "Confirmed: seed2 and seed3 each show that shaped is not worse than simplified by the margin;"
    )
