"""Real 8x8 digits and a host of 3x3 convolutions, which is sufficient: growing should gain nothing here."""

from __future__ import annotations

from workers.datasets.behaviour import growing
from workers.datasets.digits import SIZES, load
from workers.datasets.task import HostSpec, Task

TASK = Task(
    name="digits_easy",
    title="UCI handwritten digits, 8x8, host of 3x3 convolutions",
    host=HostSpec(in_channels=1, base=8, levels=3, kernel=3, pools=3, classes=10),
    slots=("early", "mid", "late"),
    image=(1, 8, 8),
    sizes=SIZES,
    load=load,
    behaviours=growing,
)
