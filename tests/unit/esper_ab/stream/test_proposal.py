"""Candidates as JSON and as flags."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.stream.proposal import proposal_of_flags, read_proposal


def test_json_and_flags_say_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '{"code": ".", "settings": {"lr": 0.1, "trainer": {"name": "adam"}}, "note": "a step"}'
    flags = proposal_of_flags(".", ["lr=0.1", "trainer.name=adam"], "a step", is_repeated=False)
    assert read_proposal(text) == flags
    assert flags.code == str(tmp_path)
    assert flags.settings == {"trainer.lr": 0.1, "trainer.name": "adam"}


def test_a_commit_stays_as_it_is():
    assert read_proposal('{"code": "HEAD~1", "again": true}').code == "HEAD~1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected JSON such as"),
        ("[]", "expected JSON such as"),
        ('{"note": "nothing"}', "it changes neither code nor settings"),
        ('{"sittings": {}}', "unknown field"),
        ('{"settings": {"seeds": 3}}', "settings: seeds is the same for both groups"),
        ('{"settings": {"lr": 1, "trainer.lr": 2}}', "trainer.lr is set twice"),
        ('{"code": ".", "note": "' + "a" * 2001 + '"}', "at most 2000 characters"),
    ],
)
def test_an_invalid_candidate_is_refused_in_one_line(text, words):
    with pytest.raises(UsageError) as refusal:
        read_proposal(text)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
