"""Real 8x8 digits with a host of 3x3 convolutions, which suffices: growing should gain nothing here."""

from __future__ import annotations

from dataclasses import replace

from workers.kinds.growth.tasks import digits

TASK = replace(
    digits.TASK,
    name="digits_easy",
    title="UCI handwritten digits, 8x8, host of 3x3 convolutions",
    host=replace(digits.TASK.host, kernel=3),
)
