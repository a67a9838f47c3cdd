"""How an assertion that does not hold ends: a failure that shows text and no traceback."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

from esper_ab.contracts.errors import EsperError
from esper_ab.contracts.shell_command import typeable
from esper_ab.pytest_plugin.session import current

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")


class NotShown(Exception):
    """What an assertion claims is not shown; the text is its answer."""


def ending_in_words(assertion: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
    """Return an assertion that fails its test with words alone: its answer, or what the user has to mend."""

    @functools.wraps(assertion)
    def worded(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Returned:
        __tracebackhide__ = True
        try:
            return assertion(*arguments, **options)
        except (EsperError, NotShown) as error:
            words = str(error)
        _fail(typeable(words))  # outside the handler, so that the failure has no cause that would be shown

    return worded


def _fail(words: str) -> NoReturn:
    """Fail the test of pytest; AssertionError where there is none."""
    __tracebackhide__ = True
    if (pytest := sys.modules.get("pytest")) is not None and current() is not None:
        pytest.fail(words, pytrace=False)
    raise AssertionError(words)
