"""The answer of an assertion, and where it goes."""

from pathlib import Path

from esper_ab.pytest_plugin import session
from esper_ab.testing.answer import Shown, note_answer, report_line

ANSWER = Shown(headline="above", lines=("outcomes: 1 2", report_line(Path("a folder/x"))), directory=Path("a folder/x"))


def test_an_answer_is_noted_where_a_test_runs():
    notes = []
    inner = session.PytestSession(directory=None, note=lambda *parts: notes.append(parts))
    session.begin(inner)
    note_answer(ANSWER)
    session.end(inner)
    ((headline, text),) = notes
    assert headline == "above"
    assert text.splitlines()[1] == "outcomes: 1 2"
    assert text.endswith("report 'a folder/x'")


def test_outside_pytest_nothing_is_noted(monkeypatch):
    monkeypatch.setattr(session, "_sessions", [])
    note_answer(ANSWER)
    assert str(ANSWER).startswith("above\noutcomes")
