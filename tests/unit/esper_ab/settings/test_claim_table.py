"""The [claim] table: what may be in it, and what experiment.toml keeps of it."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.claim_table import Claim, read_claim, remarks_on

SENTENCE = "Clipping the value loss trains better policies."


def test_a_claim_is_read_with_all_its_keys():
    table = {
        "sentence": SENTENCE,
        "source": "a paper, p. 3",
        "source_says": "it does not",
        "margin_reason": "a tenth of the range",
        "core_minutes": 20,
        "holds_if": "b equivalent-to a",
    }
    assert read_claim(table, "a.toml") == Claim(
        sentence=SENTENCE,
        source="a paper, p. 3",
        source_says="it does not",
        margin_reason="a tenth of the range",
        core_minutes=20.0,
        holds_if="b equivalent-to a",
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("clipping helps", "claim must be a table"),
        ({"sentence": SENTENCE, "sorce": "a paper"}, r"unknown key 'sorce'; did you mean source"),
        ({"source": "a paper"}, "the sentence is missing"),
        ({"sentence": ""}, "sentence ''"),
        ({"sentence": SENTENCE, "source": 2022}, "source 2022: Expected `str`, got `int`"),
        ({"sentence": SENTENCE, "core_minutes": 0}, "core_minutes 0: Expected `float` > 0"),
        ({"sentence": SENTENCE, "core_minutes": "20"}, "core_minutes '20': Expected `float`, got `str`"),
    ],
)
def test_an_invalid_claim_is_refused_with_its_key(table, words):
    with pytest.raises(UsageError, match=words):
        read_claim(table, "a.toml")


def test_remarks_have_the_sentence_as_description_and_only_the_keys_that_were_given():
    remarks = remarks_on(Claim(sentence=SENTENCE, core_minutes=20.0))
    assert remarks == {
        "description": f"claim: {SENTENCE}",
        "variants": {},
        "claim": {"sentence": SENTENCE, "core_minutes": 20.0},
    }
    assert remarks_on(None) == {}


def test_the_description_of_a_claim_has_the_condition_on_which_it_holds():
    remarks = remarks_on(Claim(sentence=SENTENCE, holds_if="b better-than a"))
    assert remarks["description"] == f"claim: {SENTENCE} It holds if b better-than a."
