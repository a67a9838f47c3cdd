"""The fewest pairs that each kind of claim may rest on."""

from __future__ import annotations

LEAST_PAIRS = 6  # with fewer, no exact test could back a rejection at 5 %: 2 / 2^5 > 0.05
# With fewer, that a difference is smaller than the margin cannot be claimed: a collapse in 15 % of one group's runs is
# unseen in .85^R of experiments, 38 % with 6 pairs, 9 % with 15.
LEAST_EQUIVALENCE_PAIRS = 15
