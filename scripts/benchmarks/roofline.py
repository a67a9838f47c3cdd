"""How long one training step must take on a machine: every operation at its peak or its bandwidth, whichever is less.

The roofline (Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785) of each operation of the algorithm
that the bank uses, with every operand read once and every result written once. Seeds' elementwise work is counted as
that of their blend; small vectors count as nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.worlds import Case, flops_per_step, task_of

_BYTES = 4
_WIDE_PASSES = 9  # beside convolutions: moments 1, pool 1; backward: zeros 1, pool 1, wide 1 and 2, constant 2
_TOP_PASSES = 10  # normalise 2, gain, bias and ReLU 2; backward: mask 3, sums 2, factor 1
_SEED_PASSES = 24  # norm 6, joining 7; backward: joining 5, norm 6


@dataclass(frozen=True)
class Roofline:
    """Seconds of one training step of all environments."""

    arithmetic: float  # all operations at the peak, as if memory were free
    bound: float  # each operation at what bounds it

    @staticmethod
    def of(case: Case, peak_gflops: float, bandwidth_gb: float) -> Roofline:
        """From the machine's measured peak and bandwidth."""
        task, samples = task_of(case.task), case.settings.batch_size * case.n_envs
        peak, bandwidth = 1e9 * peak_gflops, 1e9 * bandwidth_gb
        side, into, bound = task.image[1], task.host.in_channels, 0.0
        known = 0.0
        for level in range(task.host.levels):
            out = task.host.base << level
            read, wide = (samples * side * side * width * _BYTES for width in (into, out))
            flops = 2.0 * samples * side * side * into * out * (task.host.kernel**2 if side > 1 else 1)
            convolutions = 2 if level == 0 else 3
            known += convolutions * flops
            bound += convolutions * max(flops / peak, (read + wide) / bandwidth)
            top = wide / 4 if level < task.host.pools else wide
            bound += (_WIDE_PASSES * wide + _TOP_PASSES * top) / bandwidth
            if level < case.live_seeds:
                bound += _SEED_PASSES * top / bandwidth
            side, into = (side // 2 if level < task.host.pools else side), out
        whole = flops_per_step(case)
        return Roofline(whole / peak, bound + (whole - known) / peak)
