"""Terms are explained once in every part of a page, and at its end."""

from esper_ab.report.terms import Explained


def test_terms_are_explained_where_they_stand_and_at_the_end():
    explain = Explained()
    said = explain("A <look>, two looks, and an overlook of the pair")
    assert said.count("<abbr") == 2
    assert "&lt;<abbr" in said
    assert sorted(explain.met) == ["look", "pair"]
    explain.begin()
    assert "<abbr" in explain("looks")
