"""Named numbers of records, as trackers receive them."""

from support.journals.ready_journals import three_groups

from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.trackers.numbers import evaluation_numbers


def test_the_numbers_of_an_evaluation_equal_the_outcomes_in_the_report():
    history = fold(three_groups())
    for name, outcome in outcomes(history).items():
        numbers = evaluation_numbers(history, name)
        assert numbers["evaluation/outcome"] == outcome.outcome
        assert numbers["evaluation/reward/sparse"] == outcome.rewards["sparse"]
        assert numbers["evaluation/measure/pruned"] == outcome.measures["pruned"]
