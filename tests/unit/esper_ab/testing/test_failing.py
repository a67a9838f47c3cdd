"""A failed assertion shows words alone, in pytest and outside."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.pytest_plugin import session
from esper_ab.testing.failing import NotShown, ending_in_words


def assertion(error: Exception):
    @ending_in_words
    def assert_something() -> None:
        raise error

    return assert_something


@pytest.mark.parametrize("error", [UsageError("no such function"), NotShown("not above 3")])
def test_outside_pytest_an_assertion_error_has_the_words(error, monkeypatch):
    monkeypatch.setattr(session, "_sessions", [])
    with pytest.raises(AssertionError) as failure:
        assertion(error)()
    assert str(failure.value) == str(error)
    assert failure.value.__context__ is None


def test_in_pytest_the_failure_has_no_traceback():
    session.begin(session.PytestSession(directory=None))
    with pytest.raises(pytest.fail.Exception) as failure:
        assertion(NotShown("not above 3"))()
    session.end(session.current())
    assert (failure.value.msg, failure.value.pytrace) == ("not above 3", False)


def test_other_errors_stay_as_they_are():
    with pytest.raises(ZeroDivisionError):
        assertion(ZeroDivisionError())()
