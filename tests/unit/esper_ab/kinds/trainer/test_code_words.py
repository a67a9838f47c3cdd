import msgspec
import pytest

from esper_ab.contracts.code_state import StateOfCode
from esper_ab.contracts.trainer import StateFacts, TrainerFacts
from esper_ab.kinds.trainer.code_words import beside_the_code, equal_beside, in_plan, states_words

COMMITS = {"base": "1" * 40, "head": "2" * 40}


def state_facts(group, *, locks=None, versions=None, left_out=0, repeats=True, found="1, returned by train"):
    commit = COMMITS[group]
    state = StateOfCode(
        group=group, asked=f"v-{group}", commit=commit, sealed=commit, top="/p", locks=locks or {}, left_out=left_out
    )
    return StateFacts(state=state, root="", files=(), sha256="", repeats=repeats, found=found, versions=versions or {})


def facts(base, head):
    repeats = base.repeats and head.repeats
    return TrainerFacts(repeats=repeats, states={"base": base, "head": head})


EQUAL = {"Python": "3.11.7", "torch": "2.4.0"}


def test_the_state_of_each_group_is_named():
    words = states_words(facts(state_facts("base"), state_facts("head")))
    assert words == "Code: base is v-base (1111111) and head is v-head (2222222)."


def test_equal_first_outcomes_are_told():
    base = state_facts("base")
    assert "same outcome in every state" in in_plan(facts(base, state_facts("head")))[1]
    assert len(in_plan(facts(base, state_facts("head", found="2, returned by train")))) == 1


def test_nothing_is_said_where_nothing_but_the_code_differs():
    both = facts(
        state_facts("base", locks={"uv.lock": "a"}, versions=EQUAL),
        state_facts("head", locks={"uv.lock": "a"}, versions=EQUAL),
    )
    assert beside_the_code(both) == ()
    assert equal_beside(both) == "The same in all states: Python 3.11.7, torch 2.4.0 and uv.lock."


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({}, "the command does not show which Python it runs"),
        (EQUAL, "all runs use the packages that are installed here"),
    ],
)
def test_different_lock_files_without_different_packages(versions, words):
    both = facts(
        state_facts("base", locks={"uv.lock": "a"}, versions=versions),
        state_facts("head", locks={"uv.lock": "b"}, versions=versions),
    )
    (sentence,) = beside_the_code(both)
    assert words in sentence
    assert "uv.lock" not in equal_beside(both)


def test_different_packages_are_named_with_the_lock_file():
    both = facts(
        state_facts("base", locks={"uv.lock": "a"}, versions=EQUAL),
        state_facts("head", versions={**EQUAL, "torch": "2.5.0"}),
    )
    assert beside_the_code(both) == (
        "Beside the code, versions differ: torch 2.4.0 in base, 2.5.0 in head.",
        "The states have different lock files: uv.lock.",
    )
    assert equal_beside(both) == "The same in all states: Python 3.11.7."


def test_changes_that_are_left_out_are_told():
    (sentence,) = beside_the_code(facts(state_facts("base"), state_facts("head", left_out=2)))
    assert sentence == "head is v-head (2222222), without the uncommitted changes in 2 files; head=. has them."


def test_a_seed_that_repeats_only_in_some_states_is_told():
    (sentence,) = beside_the_code(facts(state_facts("base"), state_facts("head", repeats=False)))
    assert sentence == "A seed repeats to the bit in some states, but not in head."


def test_the_facts_survive_the_journal():
    both = facts(state_facts("base", versions=EQUAL), state_facts("head"))
    assert msgspec.json.decode(msgspec.json.encode(both), type=TrainerFacts) == both
