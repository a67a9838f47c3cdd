"""Decisions read off bytes that Hypothesis draws: one draw per example is quick and still shrinks."""


class Choices:
    """After the last byte, zeros: whoever asks should put the peaceful option first."""

    def __init__(self, data):
        self._bytes = iter(data)

    def number(self, limit):
        return next(self._bytes, 0) % limit

    def choose(self, options):
        return options[self.number(len(options))]

    def order(self, options):
        left = list(options)
        return tuple(left.pop(self.number(len(left))) for _ in options)
