"""Compares the kernel with torch in float64 on random networks; every case is reproducible from its number.

    scripts/fuzz_kernel [--modes normal scales ragged] [--cases 300 | --seconds S] [--first 0] [--kernel native-avx2]

A kernel error above ten times the error of float32 torch must have an explanation: one ReLU or one pool is so close to
a tie that rounding decides it, and the opposite side in float64 removes the difference. Torch's error is its own or,
if larger, the median of its errors on 16 networks whose parameters differ from these in the fifth digit: on one network
rounding errors may cancel by luck. Exit status 1 if an error has no explanation.
"""

import argparse
import itertools
import sys
import time

import torch
from support.kernels import kernel_cases

from workers.native import library


def main() -> int:
    usable_kernels = [kernel.name for kernel in library.kernels() if not kernel.problem]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", nargs="+", choices=kernel_cases.MODES, default=kernel_cases.MODES)
    parser.add_argument("--cases", type=int, default=300, metavar="N", help="number of cases per mode")
    parser.add_argument("--seconds", type=float, metavar="S", help="time per mode, instead of a number of cases")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case")
    parser.add_argument("--kernel", choices=usable_kernels, default=usable_kernels[0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    return max(fuzz(mode, options) for mode in options.modes)


def fuzz(mode: str, options: argparse.Namespace) -> int:
    """Run all cases of a mode; return 1 if one is unexplained."""
    counts = dict.fromkeys(kernel_cases.KINDS, 0)
    begin_s = time.monotonic()
    for number in itertools.count(options.first):
        if (
            number - options.first >= options.cases
            if options.seconds is None
            else time.monotonic() - begin_s > options.seconds
        ):
            break
        for comparison in kernel_cases.compared(kernel_cases.drawn(mode, number), options.kernel):
            counts[comparison.kind] += 1
            if comparison.kind != "near":
                print(f"{mode} {number}: {comparison}", flush=True)
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    print(f"{mode}: networks of {number - options.first} cases by {options.kernel}: {summary}", flush=True)
    return min(1, counts["UNEXPLAINED"])


if __name__ == "__main__":
    sys.exit(main())
