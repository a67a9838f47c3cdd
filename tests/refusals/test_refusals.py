"""Every input that is refused is told the same as when its text was last looked at, word for word."""

from __future__ import annotations

import pytest
from support.refusal_sites import Site, reached, sites
from support.refusals import Refusal, coverage, expected, listed, refusals, told

_found: set[Site] = set()
_given: set[str] = set()


@pytest.mark.parametrize("refusal", refusals(), ids=lambda refusal: refusal.id)
def test_the_text_is_the_same(refusal: Refusal) -> None:
    with reached() as found:
        text = told(refusal)
    _found.update(found)
    _given.add(refusal.id)
    assert text == expected(refusal.table)[refusal.name]


def test_inputs_reach_the_places_that_refuse() -> None:
    with reached() as found:
        for refusal in refusals():
            if refusal.id not in _given:  # this test was asked for alone
                told(refusal)
    share, missing = coverage(_found | found)
    assert share >= 0.95, "\n".join(f"{site.file}:{site.first} {site.name}" for site in missing)


def test_a_text_is_of_an_input() -> None:
    for table in {refusal.table for refusal in refusals()}:
        assert set(expected(table)) == {refusal.name for refusal in refusals() if refusal.table == table}


def test_a_place_that_no_input_reaches_exists() -> None:
    assert set(listed()) <= {site.name for site in sites()}
