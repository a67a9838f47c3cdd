"""Sessions of pytest may be within one another, as in tests of plugins."""

from esper_ab.pytest_plugin import session


def test_the_session_begun_last_is_the_current_one():
    outer = session.current()
    inner = session.PytestSession(directory=None)
    session.begin(inner)
    assert session.current() is inner
    session.end(inner)
    assert session.current() is outer
