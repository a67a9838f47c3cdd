"""Tables and sentences of a reward audit: every number is that of the findings, and words follow numbers."""

import pytest
from support.rewards.audited_rewards import make_played, make_reward_audit, make_scored

from esper_ab.analysis.reward_audit import findings_of
from esper_ab.contracts.reward_audit import FoundBehaviour, Varied
from esper_ab.report.tables.reward_audit import sentences, tables
from esper_ab.report.tables.table import Table

OUTCOMES = [90.0, 10.0, 20.0, 50.0, 40.0, 30.0]  # two reference behaviours first


def shown(*scored: object) -> dict[str, Table]:
    return {table.title: table for table in tables(findings_of(make_reward_audit(OUTCOMES, list(scored))))}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        (OUTCOMES, "of 4 random schedules it prefers the best one, 50.0 %"),
        ([-value for value in OUTCOMES], "(20.0 %) is worse than one chosen blindly (35.0 %); the best has 50.0 %"),
        ([9.0, 1.0, 2.0, 3.0, 4.0, 3.0], "has 40.0 %, 10.0 points less than the best"),
    ],
)
def test_the_sentence_says_what_the_favourite_is_worth(returns: list[float], words: str) -> None:
    (sentence,) = sentences(findings_of(make_reward_audit(OUTCOMES, {"mine": returns})))
    assert sentence.startswith("mine: ")
    assert words in sentence


def test_the_outcome_itself_ends_the_table_of_choices_and_a_wrong_pair_is_named_with_what_it_is_worth() -> None:
    found = shown(make_scored("opposite", [-value for value in OUTCOMES]))
    own, best = found["What it costs to choose by each reward"].rows
    assert own == ("opposite", "35.0", "20.0", "80.0", "80.0", "40.0", "-1.00")
    assert best == ("the outcome itself", "35.0", "50.0", "0.0", "0.0", "0.0", "1.00")
    told = "reference 1: pays -10, 10.0 %; rather than reference 0: pays -90, 90.0 %"
    worst, *_ = found["The worst pairs that a reward puts in the wrong order"].rows
    assert worst == ("opposite", "80.0", told)


def test_constants_are_shown_where_two_decimals_show_what_they_do() -> None:
    varied = (
        Varied(constant="reward.scale", was="1", now="2", returns=tuple(2 * value for value in OUTCOMES)),
        Varied(constant="reward.sign", was="1", now="-1", returns=tuple(-value for value in OUTCOMES)),
    )
    table = shown(make_scored("honest", OUTCOMES, varied=varied))["Sensitivity to the reward's constants"]
    assert table.rows == (("honest", "reward.sign", "1", "-1", "-30.00", "-1.00"),)
    assert "Not shown: 1 of honest" in table.note


def test_what_a_search_found_is_shown_by_what_it_is_worth_on_other_hosts() -> None:
    found = FoundBehaviour(behaviour=make_played(9, 61.0), returned=1.0, searched_return=2.0, tried=5)
    table = shown(make_scored("mine", OUTCOMES, found_behaviour=found))["What a short search for the reward finds"]
    assert table.rows == (("mine", "61.0", "words of 9"),)
