"""Input of a controller before a decision; read-only by convention."""

from __future__ import annotations

from dataclasses import dataclass

from workers.arrays import Bools, Floats32
from workers.growth.rules.masks import DecisionMasks
from workers.growth.rules.seeds import SeedTable
from workers.growth.rules.tracker import Signals


@dataclass(frozen=True, kw_only=True)
class DecisionView:
    """State before decision `step`, for all environments of a run."""

    step: int  # 1-based
    steps: int
    slots: tuple[str, ...]  # network order
    blueprints: tuple[str, ...]  # order of the blueprint head
    table: SeedTable
    alive: Bools  # [E]
    signals: Signals
    masks: DecisionMasks
    observation: Floats32  # [E, width]
