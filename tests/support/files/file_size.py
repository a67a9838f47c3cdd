"""Limit the size of files, and make system calls fail."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Inside this context, writing makes no file larger than `size_bytes`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def failing(number: int, times: int = 1_000) -> Callable[..., None]:
    """Return a function that raises OSError `number` at its first `times` calls and then does nothing."""
    failures = [OSError(number, os.strerror(number)) for _ in range(times)]

    def fails(*_: object) -> None:
        if failures:
            raise failures.pop()

    return fails
