"""The page with the rule of a verdict has the numbers that its script computes."""

import pytest
import rule_numbers


@pytest.mark.slow
def test_the_page_has_every_number_that_the_script_computes(capsys):
    page_text = rule_numbers.PAGE.read_text(encoding="utf-8")
    assert rule_numbers.missing(page_text) == []
    assert len(capsys.readouterr().out.splitlines()) == 14


def test_a_page_without_a_number_is_noticed(monkeypatch):
    monkeypatch.setattr(rule_numbers, "expected_words", lambda: iter(["83 % at the least", "9 % at 15"]))
    assert rule_numbers.missing("unseen in 38 % at\n6 pairs and 9 %\nat 15") == ["83 % at the least"]
