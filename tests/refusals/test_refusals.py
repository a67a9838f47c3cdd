"""Every input that is refused is told the same as when its text was last looked at, word for word."""

import pytest
from support.goldens.refusal_sites import sites
from support.goldens.refusals import Refusal, coverage, expected, listed, refusals, text_and_sites


@pytest.mark.parametrize("refusal", refusals(), ids=lambda refusal: refusal.id)
def test_the_text_is_the_same(refusal: Refusal) -> None:
    assert text_and_sites(refusal)[0] == expected(refusal.table)[refusal.name]


def test_inputs_reach_the_places_that_refuse() -> None:
    share, missing = coverage()
    assert share >= 0.95, "\n".join(f"{site.file}:{site.first} {site.name}" for site in missing)


def test_a_text_is_of_an_input() -> None:
    for table in {refusal.table for refusal in refusals()}:
        assert set(expected(table)) == {refusal.name for refusal in refusals() if refusal.table == table}


def test_a_place_that_no_input_reaches_exists() -> None:
    assert set(listed()) <= {site.name for of_file in sites().values() for site in of_file}
