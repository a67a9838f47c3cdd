"""Part 6: `scripts/bench gpu`: our kernel on one core beside torch on the GPU."""

import math
from typing import Any

from benchmarks import gpu
from benchmarks.markdown import hosts_of

from signoff.machine import Machine
from workers.process.setup import keep_freed_memory

TITLE = "Speed"
BUDGET_S = 80
_SMALL_ENVS = (2, 3)


def measure(machine: Machine) -> dict[str, Any]:
    """Measure every cell of the benchmark, few times."""
    keep_freed_memory()  # as a worker does
    return gpu.cells(gpu.ENVS, 3) if machine.real else gpu.cells(_SMALL_ENVS, 1)


def problems(findings: dict[str, Any]) -> list[str]:
    """Losses that are not the CPU's, and cells that are missing. Which is faster is a result, not a problem."""
    lines = [] if findings["cells"] else ["nothing was measured"]
    for cell in findings["cells"]:
        description = f"{hosts_of(cell['case'])} with {cell['case']['n_envs']} environments"
        if not cell["difference"] <= gpu.ROUNDED:
            lines.append(
                f"{description}: losses differ from the CPU's by {cell['difference']:.1e}, allowed {gpu.ROUNDED}"
            )
        if not all(math.isfinite(ms["median"]) and ms["median"] > 0.0 for ms in cell["ms"].values()):
            lines.append(f"{description}: not measured")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return the benchmark's table."""
    return gpu.render(findings)
