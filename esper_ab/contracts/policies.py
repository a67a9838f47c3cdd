"""Question about saved policies, and the data plane's answer."""

from __future__ import annotations

from typing import Any

from esper_ab.contracts.settings import (
    NonNegativeInt,
    PositiveInt,
    Settings,
)


class PoliciesQuestion(Settings, frozen=True, kw_only=True):
    """The policies that `esper-ab evaluate` should evaluate, with the options of the evaluation."""

    policies: tuple[str, ...]
    eval_episodes: PositiveInt | None  # None: as in the run
    rng_seed: NonNegativeInt | None  # None: the run's own
    device: str  # torch device of the environments
    importable: tuple[str, ...]  # modules that a policy's task may import


class PoliciesAnswer(Settings, frozen=True, kw_only=True):
    """The results per policy and kind of action, as rows and as lines of text with the same content."""

    rows: tuple[dict[str, Any], ...]
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
