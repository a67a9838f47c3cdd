"""The effect of one comparison: the estimate of a difference with its test. A type only."""

from __future__ import annotations

from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.item_difference import ItemDifference
from esper_ab.stats.proportions import Proportions

Effect = AdjustedDifference | Proportions | ItemDifference
