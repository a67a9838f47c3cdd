"""Decisions read from bytes that Hypothesis draws: one draw per example is fast and still shrinks."""


class Choices:
    """Choices from bytes; zeros follow the last byte, so callers put the harmless option first."""

    def __init__(self, data):
        self._bytes = iter(data)

    def number(self, limit):
        return next(self._bytes, 0) % limit

    def choose(self, options):
        return options[self.number(len(options))]

    def order(self, options):
        remaining = list(options)
        return tuple(remaining.pop(self.number(len(remaining))) for _ in options)
