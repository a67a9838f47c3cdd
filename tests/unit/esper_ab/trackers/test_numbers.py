"""The numbers in records, by name, for trackers. Pure. Missing values (None) are left out."""

from support.journals.ready_journals import three_groups

from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.trackers.numbers import evaluation_numbers


def test_an_evaluation_is_what_the_report_says_of_the_run():
    history = fold(three_groups())
    for name, outcome in outcomes(history).items():
        numbers = evaluation_numbers(history, name)
        assert numbers["evaluation/outcome"] == outcome.outcome
        assert numbers["evaluation/reward/sparse"] == outcome.rewards["sparse"]
        assert numbers["evaluation/measure/pruned"] == outcome.measures["pruned"]
