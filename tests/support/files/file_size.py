"""Files that cannot grow, and calls of the system that fail."""

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
    """A function that fails `times` times as a call of the system does, and does nothing afterwards."""
    left = [OSError(number, os.strerror(number)) for _ in range(times)]

    def fails(*_: object) -> None:
        if left:
            raise left.pop()

    return fails
