"""Limit the size of files, and make system calls fail."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Within this context, a write that would make a file larger than `size_bytes` fails."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft_limit, hard_limit))


def failing(number: int, times: int = 1_000) -> Callable[..., None]:
    """Return a function that raises OSError `number` at its first `times` calls and then does nothing."""
    failures = [OSError(number, os.strerror(number)) for _ in range(times)]

    def fail(*_: object) -> None:
        if failures:
            raise failures.pop()

    return fail
