"""The forest plot has a row per experiment and one for all of them."""

import pytest
from support.journals.replications import experiment, source

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.same_question import same_question
from esper_ab.report.figures.forest import forest_drawing, forest_figure
from esper_ab.report.together import together


def answer_of(*experiments):
    return together(same_question([source(one) for one in experiments]))


def labels(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_the_last_row_is_the_pooled_effect():
    assert labels(forest_figure(answer_of(experiment(1), experiment(2)))) == ["seed1", "seed2", "pooled"]


def test_different_plans_end_in_the_random_effects_mean_from_three_on():
    two = answer_of(experiment(1), experiment(2, replicates=8))
    assert labels(forest_figure(two)) == ["seed1", "seed2"]
    three = answer_of(experiment(1), experiment(2, replicates=8), experiment(3))
    assert labels(forest_figure(three)) == ["seed1", "seed2", "seed3", "random-effects mean"]


def test_the_alternative_text_names_every_effect():
    drawing = forest_drawing(answer_of(experiment(1), experiment(2)))
    assert drawing.alt.startswith("shaped minus simplified: seed1 +")
    assert ", pooled +4.24 points" in drawing.alt


def test_without_an_estimate_there_is_no_figure():
    groups = {"shaped": experiment(1).groups["shaped"]}
    alone = answer_of(experiment(1, groups=groups), experiment(2, groups=groups))
    assert forest_drawing(alone) is None
    with pytest.raises(UsageError, match="no effect to draw"):
        forest_figure(alone)
