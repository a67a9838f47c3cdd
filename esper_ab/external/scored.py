"""A result with the profiles of its groups beside the verdicts. Pure."""

from __future__ import annotations

from dataclasses import replace

from esper_ab.external.profiles import Ranges, profiles_of
from esper_ab.external.result import ExternalResult


def with_profiles(result: ExternalResult, ranges: Ranges) -> ExternalResult:
    """Return `result` with profiles of what it compares; as it is without ranges, and while a task has no score."""
    groups = dict.fromkeys(name for one in result.design.comparisons for name in (one.a, one.b))
    return replace(result, profiles=profiles_of(result.endpoints, tuple(groups), ranges)) if ranges else result
