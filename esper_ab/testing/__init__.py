"""Assertions on training for tests: a trainer learns, or is not worse than another."""

from esper_ab.testing.learning import assert_learns

__all__ = ["assert_learns"]
