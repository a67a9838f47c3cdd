"""Every refused input gets the stored error message, word for word."""

import pytest
from support.goldens.refusal_sites import sites
from support.goldens.refusals import Refusal, coverage, expected, listed, refusals, text_and_sites


@pytest.mark.parametrize("refusal", refusals(), ids=lambda refusal: refusal.id)
def test_a_refusal_has_its_stored_text(refusal: Refusal) -> None:
    assert text_and_sites(refusal)[0] == expected(refusal.table)[refusal.name]


def test_stored_inputs_reach_95_percent_of_the_refusals_in_the_code() -> None:
    share, missed_sites = coverage()
    assert share >= 0.95, "\n".join(f"{site.file}:{site.first} {site.name}" for site in missed_sites)


def test_every_stored_text_belongs_to_an_input() -> None:
    for table in {refusal.table for refusal in refusals()}:
        assert set(expected(table)) == {refusal.name for refusal in refusals() if refusal.table == table}


def test_every_refusal_listed_as_unreached_exists() -> None:
    assert set(listed()) <= {site.name for file_sites in sites().values() for site in file_sites}
