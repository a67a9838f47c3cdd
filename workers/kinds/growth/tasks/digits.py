"""Real 8x8 digits with a host of 1x1 convolutions, which sees no shapes until a seed with a larger kernel is grown."""

from __future__ import annotations

from workers.kinds.growth.datasets.task import DIGITS_SIZES, HostSpec, Task, load_digits

TASK = Task(
    name="digits",
    title="UCI handwritten digits, 8x8, host of 1x1 convolutions",
    host=HostSpec(in_channels=1, base=8, levels=3, kernel=1, pools=3, classes=10),
    slots=("early", "mid", "late"),
    image=(1, 8, 8),
    sizes=DIGITS_SIZES,
    load=load_digits,
)
