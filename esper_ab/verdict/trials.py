"""The trials of an evaluation of two checkpoints: which arm each is of, and what is behind the arms. Types only."""

from __future__ import annotations

from esper_ab.contracts.settings import Settings
from esper_ab.design.trial_order import LABELS


class Trials(Settings, frozen=True, kw_only=True):
    """The order of the trials. Trial t, counted from 0, belongs to the plan's replicate t // 2."""

    arms: tuple[str, str]  # the groups behind the labels A and B
    order: str  # the label of every trial, in the order in which they run
    seed: int  # from which the arms and the order were drawn

    def group_of(self, label: str) -> str:
        """Return the group behind a label."""
        return self.arms[LABELS.index(label)]
