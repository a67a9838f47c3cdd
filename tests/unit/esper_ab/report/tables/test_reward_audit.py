"""Tables and sentences of a reward audit equal its findings."""

import pytest
from support.rewards.audited_rewards import make_played, make_reward_audit, make_scored

from esper_ab.analysis.reward_audit import findings_of
from esper_ab.contracts.reward_audit import FoundBehaviour, Varied
from esper_ab.report.tables.reward_audit import sentences, tables
from esper_ab.report.tables.table import Table

OUTCOMES = [90.0, 10.0, 20.0, 50.0, 40.0, 30.0]  # two reference behaviours first


def make_tables(*scored_rewards: object) -> dict[str, Table]:
    return {table.title: table for table in tables(findings_of(make_reward_audit(OUTCOMES, list(scored_rewards))))}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        (OUTCOMES, "of 4 random schedules it prefers the best one, 50.0 %"),
        ([-value for value in OUTCOMES], "(20.0 %) is worse than one chosen blindly (35.0 %); the best has 50.0 %"),
        ([9.0, 1.0, 2.0, 3.0, 4.0, 3.0], "has 40.0 %, 10.0 points less than the best"),
    ],
)
def test_the_audit_sentence_states_the_outcome_of_the_preferred_behaviour(returns: list[float], words: str) -> None:
    (sentence,) = sentences(findings_of(make_reward_audit(OUTCOMES, {"mine": returns})))
    assert sentence.startswith("mine: ")
    assert words in sentence


def test_the_audit_tables_list_choices_and_wrongly_ordered_pairs() -> None:
    tables_by_title = make_tables(make_scored("opposite", [-value for value in OUTCOMES]))
    reward_row, outcome_row = tables_by_title["What it costs to choose by each reward"].rows
    assert reward_row == ("opposite", "35.0", "20.0", "80.0", "80.0", "40.0", "-1.00")
    assert outcome_row == ("the outcome itself", "35.0", "50.0", "0.0", "0.0", "0.0", "1.00")
    pair_text = "reference 1: pays -10, 10.0 %; rather than reference 0: pays -90, 90.0 %"
    worst_row, *_ = tables_by_title["The worst pairs that a reward puts in the wrong order"].rows
    assert worst_row == ("opposite", "80.0", pair_text)


def test_constants_with_an_effect_below_two_decimals_are_not_shown() -> None:
    variations = (
        Varied(constant="reward.scale", was="1", now="2", returns=tuple(2 * value for value in OUTCOMES)),
        Varied(constant="reward.sign", was="1", now="-1", returns=tuple(-value for value in OUTCOMES)),
    )
    table = make_tables(make_scored("honest", OUTCOMES, varied_constants=variations))[
        "Sensitivity to the reward's constants"
    ]
    assert table.rows == (("honest", "reward.sign", "1", "-1", "-30.00", "-1.00"),)
    assert "Not shown: 1 of honest" in table.note


def test_a_behaviour_found_by_the_search_is_shown_with_its_outcome() -> None:
    behaviour = FoundBehaviour(behaviour=make_played(9, 61.0), returned=1.0, searched_return=2.0, tried=5)
    table = make_tables(make_scored("mine", OUTCOMES, found_behaviour=behaviour))[
        "What a short search for the reward finds"
    ]
    assert table.rows == (("mine", "61.0", "words of 9"),)
