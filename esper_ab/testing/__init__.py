"""Assertions on training for tests: a trainer learns, or is not worse than another."""

from esper_ab.testing.learning import assert_learns
from esper_ab.testing.not_worse import assert_not_worse

__all__ = ["assert_learns", "assert_not_worse"]
