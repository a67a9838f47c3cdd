"""Decisions read from bytes that Hypothesis draws: one draw per example is fast and still shrinks."""


class Choices:
    """Choices read from bytes. After the last byte all choices are 0, so callers put the harmless option first."""

    def __init__(self, data):
        self._bytes = iter(data)

    def number(self, limit):
        return next(self._bytes, 0) % limit

    def choose(self, options):
        return options[self.number(len(options))]

    def order(self, options):
        options_left = list(options)
        return tuple(options_left.pop(self.number(len(options_left))) for _ in options)
